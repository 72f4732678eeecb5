// What a receiver verifies its requests with, by language: the examples of docs/receivers.md, which a test runs as they stand
// there. Another test holds these to them.

export interface ReceiverExample {
  language: string
  file: string
  /** Starts it, behind the secret in SHARED_SECRET. */
  run: string
  code: string
}

/** Where each of them listens. */
export const exampleUrl = 'http://127.0.0.1:4000/'

export const receiverExamples: readonly ReceiverExample[] = [
  {
    language: 'Node',
    file: 'receiver.mjs',
    run: 'node receiver.mjs',
    code: `import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const secret = process.env.SHARED_SECRET
if (!secret) throw new Error('SHARED_SECRET is not set')

function isAuthentic(body, signature) {
  const expected = createHmac('sha1', secret).update(body).digest()
  const given = Buffer.from(signature ?? '', 'hex')
  return given.length === expected.length && timingSafeEqual(given, expected)
}

createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  if (!isAuthentic(body, request.headers['x-signature'])) return response.writeHead(401).end()
  console.log(JSON.parse(body))
  response.end()
}).listen(4000, '127.0.0.1')`,
  },
  {
    language: 'Python',
    file: 'receiver.py',
    run: 'python3 receiver.py',
    code: `import hashlib, hmac, json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

secret = os.environ.get('SHARED_SECRET')
if not secret:
    sys.exit('SHARED_SECRET is not set')

def is_authentic(body: bytes, signature: str | None) -> bool:
    expected = hmac.new(secret.encode(), body, hashlib.sha1).hexdigest()
    return hmac.compare_digest(expected.encode(), (signature or '').encode())

class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        authentic = is_authentic(body, self.headers['X-Signature'])
        if authentic:
            print(json.loads(body), flush=True)
        self.send_response(200 if authentic else 401)
        self.end_headers()

HTTPServer(('127.0.0.1', 4000), Receiver).serve_forever()`,
  },
  {
    language: 'Go',
    file: 'receiver.go',
    run: 'go run receiver.go',
    code: `package main

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

func isAuthentic(body []byte, signature, secret string) bool {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write(body)
	given, err := hex.DecodeString(signature)
	return err == nil && hmac.Equal(given, mac.Sum(nil))
}

func main() {
	secret := os.Getenv("SHARED_SECRET")
	if secret == "" {
		log.Fatal("SHARED_SECRET is not set")
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !isAuthentic(body, r.Header.Get("X-Signature"), secret) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Println(string(body))
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:4000", nil))
}`,
  },
  {
    language: 'PHP',
    file: 'receiver.php',
    run: 'php -S 127.0.0.1:4000 receiver.php',
    code: `<?php
$secret = getenv('SHARED_SECRET');
if ($secret === false || $secret === '') {
    http_response_code(500);
    exit('SHARED_SECRET is not set');
}
$body = file_get_contents('php://input');
$expected = hash_hmac('sha1', $body, $secret);
if (!hash_equals($expected, $_SERVER['HTTP_X_SIGNATURE'] ?? '')) {
    http_response_code(401);
    exit;
}
error_log($body);`,
  },
  {
    language: 'Java',
    file: 'Receiver.java',
    run: 'java Receiver.java',
    code: `import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Receiver {
    static boolean isAuthentic(byte[] body, String signature, String secret) {
        try {
            Mac mac = Mac.getInstance("HmacSHA1");
            mac.init(new SecretKeySpec(secret.getBytes(UTF_8), "HmacSHA1"));
            String expected = HexFormat.of().formatHex(mac.doFinal(body));
            return signature != null && MessageDigest.isEqual(expected.getBytes(UTF_8), signature.getBytes(UTF_8));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    public static void main(String[] args) throws Exception {
        String secret = System.getenv("SHARED_SECRET");
        if (secret == null || secret.isEmpty()) throw new IllegalStateException("SHARED_SECRET is not set");
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 4000), 0);
        server.createContext("/", exchange -> {
            byte[] body = exchange.getRequestBody().readAllBytes();
            boolean authentic = isAuthentic(body, exchange.getRequestHeaders().getFirst("X-Signature"), secret);
            if (authentic) System.out.println(new String(body, UTF_8));
            exchange.sendResponseHeaders(authentic ? 200 : 401, -1);
            exchange.close();
        });
        server.start();
    }
}`,
  },
]
