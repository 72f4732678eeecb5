// What a broker's port speaks, found out by asking it. A broker that is asked in another way than it was set up for
// just closes the connection, as one that stops does: only a probe can tell the two apart.
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { WireReader, int16, int32, text } from '../wire/kafka-wire.ts'

/** `null`: it could not be found out. */
export interface ListenerProbe {
  hasTls: boolean | null
  /** The SASL mechanisms that it takes; null also where it takes none. */
  mechanisms: string[] | null
}

const withinMs = 3_000
const saslHandshake = 17
const maxAnswerBytes = 64 * 1_024

/** Opens a connection or two, logs in nowhere and sends nothing but a question. Never throws. */
export async function probeListener(broker: string): Promise<ListenerProbe> {
  const plain = await ask(tcp(broker))
  if (plain !== null) return { hasTls: false, mechanisms: plain }
  // No certificate is checked, for nothing that matters goes over this connection.
  const secured = await ask(tls(broker))
  if (secured !== null) return { hasTls: true, mechanisms: secured }
  return { hasTls: await handshakes(tls(broker)), mechanisms: null }
}

/** The name may be an IPv6 address in brackets. */
function addressOf(broker: string): { host: string; port: number } {
  const colon = broker.lastIndexOf(':')
  return { host: broker.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(broker.slice(colon + 1)) }
}

const tcp = (broker: string): Socket => connectTcp(addressOf(broker))
const tls = (broker: string): Socket => connectTls({ ...addressOf(broker), rejectUnauthorized: false })

/** Whether there was a TLS handshake, be it one that the broker ended for want of a client certificate. */
function handshakes(socket: Socket): Promise<boolean | null> {
  return foundOut(socket, (end) => {
    socket.once('secureConnect', () => end(true))
    socket.on('error', ({ code }: NodeJS.ErrnoException) => end(code?.includes('_ALERT_') ? true : null))
  })
}

/**
 * Asks for a SASL handshake: resolves to the mechanisms, to none where the listener takes no login, and to null where
 * what listens there does not answer.
 */
function ask(socket: Socket): Promise<string[] | null> {
  return foundOut(socket, (end) => {
    let answer = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      answer = Buffer.concat([answer, chunk])
      if (answer.length < 4) return
      const size = answer.readInt32BE(0)
      // An alert of TLS, or an HTTP answer, reads as a size that no answer has.
      if (size < 10 || size > maxAnswerBytes) end(null)
      else if (answer.length >= 4 + size) end(mechanismsIn(answer.subarray(4, 4 + size)))
    })
    socket.once('secureConnect', () => socket.write(handshakeRequest()))
    socket.once('connect', () => {
      if (!('encrypted' in socket)) socket.write(handshakeRequest())
    })
    socket.on('error', () => end(null))
  })
}

/** What `listen` finds out of a connection, which is then closed; null when it ends or is silent before. */
function foundOut<T>(socket: Socket, listen: (end: (found: T | null) => void) => void): Promise<T | null> {
  const { promise, resolve } = Promise.withResolvers<T | null>()
  const end = (found: T | null) => {
    resolve(found)
    socket.destroy()
  }
  listen(end)
  socket.once('close', () => end(null))
  socket.setTimeout(withinMs, () => end(null))
  return promise
}

/** SaslHandshake 1, with request number 1 and without a client's name, for a mechanism that there is not. */
function handshakeRequest(): Buffer {
  const request = Buffer.concat([int16(saslHandshake), int16(1), int32(1), int16(-1), text('NONE')])
  return Buffer.concat([int32(request.length), request])
}

/** The answer's request number, an error, and the mechanisms, of which a listener without login has none. */
function mechanismsIn(answer: Buffer): string[] | null {
  try {
    const reader = new WireReader(answer)
    if (reader.int32() !== 1) return null
    reader.pass(2)
    return reader.list(() => reader.text()!)
  } catch {
    return null
  }
}
