// A receiver that takes little of its core: it answers 200, at once or after the delay given as its first argument in
// ms, counts, and keeps the times of calls whose ids have them. The second argument says on how many ports it listens;
// one of them can be told to answer nothing. A third one names a folder with `cert.pem` and `key.pem`: then it speaks
// TLS 1.3. What it is told and what it reports goes over Node's IPC channel: JSON, a line each.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

var (
	endOfHead = []byte("\r\n\r\n")
	length    = []byte("ontent-")
	channel   *os.File
	reports   = make(chan map[string]any, 16)

	// In one round: how many requests have come, are expected, and are its warm-up.
	count, expected, warmUp atomic.Int64
	warmAt, cpuAtWarm       float64
	// Requests hold several calls, and what is counted is calls.
	batched   atomic.Bool
	messageId = []byte(`"messageId":`)

	// All that are open, to be cut at once.
	connections sync.Map
	// By port: its requests, or the calls of batches, all rounds together.
	totals []atomic.Int64
	// The port that answers nothing; -1: none.
	hanging atomic.Int64
)

func main() {
	delayMs, _ := strconv.Atoi(argument(1, "0"))
	ports, _ := strconv.Atoi(argument(2, "1"))
	fd, err := strconv.Atoi(os.Getenv("NODE_CHANNEL_FD"))
	if err != nil {
		panic("this program is started by the benchmarks")
	}
	channel = os.NewFile(uintptr(fd), "channel")
	expected.Store(1 << 62)
	warmUp.Store(1)
	hanging.Store(-1)
	totals = make([]atomic.Int64, ports)
	go report()
	if folder := argument(3, ""); folder != "" {
		secured = secure(folder)
	}
	numbers := make([]int, 0, ports)
	for port := range totals {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		numbers = append(numbers, listener.Addr().(*net.TCPAddr).Port)
		if secured != nil {
			listener = tls.NewListener(listener, secured)
		}
		go accept(listener, int64(port), time.Duration(delayMs)*time.Millisecond)
	}
	reports <- map[string]any{"kind": "listening", "port": numbers[0], "ports": numbers}
	obey()
}

func argument(index int, otherwise string) string {
	if len(os.Args) > index {
		return os.Args[index]
	}
	return otherwise
}

func report() {
	for each := range reports {
		line, _ := json.Marshal(each)
		channel.Write(append(line, '\n'))
	}
}

// Ends with the benchmark.
func obey() {
	lines := bufio.NewScanner(channel)
	for lines.Scan() {
		var told struct {
			Expect, WarmUp int64
			Hang           *int64
			Total          bool
			From, To       float64
			Since          string
			Restart        bool
			Batched        bool
		}
		if json.Unmarshal(lines.Bytes(), &told) != nil {
			continue
		}
		switch {
		case told.Since != "":
			reports <- quantiles(told.From, told.To, told.Since)
		case told.Hang != nil:
			hanging.Store(*told.Hang)
			reports <- map[string]any{"kind": "behaving"}
		case told.Total:
			reports <- map[string]any{"kind": "totals", "at": monotonicMs(), "requests": perPort()}
		case told.Restart:
			restart()
		case told.Expect == 0:
			reports <- map[string]any{
				"kind": "progress", "count": count.Load(), "at": monotonicMs(),
				"handshakes": handshakes.Load(), "resumed": resumed.Load(),
			}
		default:
			count.Store(0)
			warmUp.Store(max(1, told.WarmUp))
			expected.Store(told.Expect)
			batched.Store(told.Batched)
			reports <- map[string]any{"kind": "ready"}
		}
	}
}

func perPort() []int64 {
	all := make([]int64, len(totals))
	for port := range totals {
		all[port] = totals[port].Load()
	}
	return all
}

func accept(listener net.Listener, port int64, delay time.Duration) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go serve(connection, port, delay)
	}
}

func serve(connection net.Conn, port int64, delay time.Duration) {
	connections.Store(connection, true)
	defer connections.Delete(connection)
	defer connection.Close()
	buffer := make([]byte, 0, 8_192)
	for {
		if len(buffer) == cap(buffer) {
			buffer = append(buffer, make([]byte, len(buffer))...)[:len(buffer)]
		}
		read, err := connection.Read(buffer[len(buffer):cap(buffer)])
		if err != nil {
			return
		}
		buffer = buffer[:len(buffer)+read]
		for {
			head, size := sizeOf(buffer)
			if size < 0 || size > len(buffer) {
				break
			}
			keepTimes(buffer[:head])
			calls := callsIn(buffer[head:size])
			totals[port].Add(int64(calls))
			for ; calls > 0; calls-- {
				arrived()
			}
			if delay > 0 {
				time.Sleep(delay)
			}
			if port == hanging.Load() {
				// Until the client has had enough.
				io.Copy(io.Discard, connection)
				return
			}
			if _, err := connection.Write([]byte(answer)); err != nil {
				return
			}
			buffer = buffer[:copy(buffer, buffer[size:])]
		}
	}
}

// Of the first request: its head, and head and body together; -1 while its head is not whole.
func sizeOf(buffer []byte) (headSize, all int) {
	end := bytes.Index(buffer, endOfHead)
	if end < 0 {
		return -1, -1
	}
	size := end + len(endOfHead)
	head := buffer[:end]
	for {
		at := bytes.Index(head, length)
		if at < 0 {
			return end, size
		}
		head = head[at+len(length):]
		if len(head) > 8 && (head[0]|0x20) == 'l' && head[6] == ':' {
			value := 0
			for _, digit := range bytes.TrimLeft(head[7:], " ") {
				if digit < '0' || digit > '9' {
					break
				}
				value = value*10 + int(digit-'0')
			}
			return end, size + value
		}
	}
}

// One in a request, unless requests hold several: then each has its id.
func callsIn(body []byte) int {
	if !batched.Load() {
		return 1
	}
	return bytes.Count(body, messageId)
}

func arrived() {
	now := count.Add(1)
	if now == warmUp.Load() {
		warmAt, cpuAtWarm = monotonicMs(), cpuMs()
		reports <- map[string]any{"kind": "warm", "at": warmAt}
	}
	if now != expected.Load() {
		return
	}
	at := monotonicMs()
	reports <- map[string]any{
		"kind": "done", "measured": now - warmUp.Load(), "from": warmAt, "to": at, "elapsedMs": at - warmAt,
		"cpuMs": cpuMs() - cpuAtWarm,
	}
}

// The clock that Node's process.hrtime reads.
func monotonicMs() float64 {
	const clockMonotonic = 1
	var at syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&at)), 0)
	return float64(at.Sec)*1e3 + float64(at.Nsec)/1e6
}

func cpuMs() float64 {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	total := used.Utime.Nano() + used.Stime.Nano()
	return float64(total) / 1e6
}
