import { connect } from 'node:net'

export interface RawAnswer {
  status: number
  headers: Record<string, string>
  body: string
}

/**
 * Sends bytes as they are over a connection of their own, and gives what came back once it holds a whole answer or
 * the server has closed; null when it closed without one. `halfClose` ends the sending side behind the bytes.
 */
export function sendRaw(
  port: number,
  bytes: string | Buffer | (string | Buffer)[],
  { halfClose = false, withinMs = 10_000 } = {},
): Promise<RawAnswer | null> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    const chunks: Buffer[] = []
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`no answer within ${withinMs} ms`))
    }, withinMs)
    const settle = (answer: RawAnswer | null) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(answer)
    }
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      const answer = answerIn(Buffer.concat(chunks))
      if (answer) settle(answer)
    })
    socket.on('error', () => settle(answerIn(Buffer.concat(chunks))))
    socket.on('close', () => settle(answerIn(Buffer.concat(chunks))))
    for (const part of Array.isArray(bytes) ? bytes : [bytes]) socket.write(part)
    if (halfClose) socket.end()
  })
}

/** One request as text: its head with these lines, and its body. */
export function rawRequest(
  target: string,
  lines: readonly string[],
  body: string | Buffer = '',
  method = 'POST',
): Buffer {
  const head = [
    `${method} ${target} HTTP/1.1`,
    'Host: 127.0.0.1',
    ...lines,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), Buffer.from(body)])
}

function answerIn(data: Buffer): RawAnswer | null {
  const headEnd = data.indexOf('\r\n\r\n')
  if (headEnd < 0) return null
  const [first, ...rest] = data.toString('latin1', 0, headEnd).split('\r\n')
  const headers = Object.fromEntries(
    rest.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  )
  const status = Number(first!.split(' ')[1])
  // Only says that the body may come.
  if (status < 200) return answerIn(data.subarray(headEnd + 4))
  const length = Number(headers['content-length'] ?? 0)
  if (data.length < headEnd + 4 + length) return null
  return {
    status,
    headers,
    body: data.toString('utf8', headEnd + 4, headEnd + 4 + length),
  }
}
