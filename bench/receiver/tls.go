package main

import (
	"crypto/rand"
	"crypto/tls"
	"net"
	"path/filepath"
	"sync/atomic"
)

var (
	// Nil without TLS.
	secured *tls.Config
	// Handshakes done, and how many of them took up a session from before.
	handshakes, resumed atomic.Int64
)

func secure(folder string) *tls.Config {
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem"))
	if err != nil {
		panic(err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS13,
		VerifyConnection: func(state tls.ConnectionState) error {
			handshakes.Add(1)
			if state.DidResume {
				resumed.Add(1)
			}
			return nil
		},
	}
}

// As a receiver that is restarted: connections end, and nobody knows the sessions from before.
func restart() {
	if secured != nil {
		var key [32]byte
		rand.Read(key[:])
		secured.SetSessionTicketKeys([][32]byte{key})
	}
	connections.Range(func(connection, _ any) bool {
		connection.(net.Conn).Close()
		return true
	})
}
