import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { createSecureContext, type SecureContext, type SecureVersion } from 'node:tls'
import type { TestContext } from 'node:test'
import type { HttpClient } from '../../../src/adapters/webhook/connection.ts'
import type { Dial } from '../../../src/adapters/webhook/dial.ts'
import { createWebhookTransport, httpClients } from '../../../src/adapters/webhook/transport.ts'
import type { Outcome } from '../../../src/core/delivery/outcome.ts'
import type { WebhookTransport } from '../../../src/forwarder/send/webhook-transport.ts'
import type { TestAuthority } from '../../support/secured/certificates.ts'
import { OnePieceSocket } from '../../support/secured/one-piece-socket.ts'
import { untilArrived } from './raw-server.ts'
import { loopback, requestOf } from './transport-under-test.ts'

export type ClientName = keyof typeof httpClients
export type Secure = SecureVersion | null
export type Ending = 'keep' | 'fin' | 'rst'

/** One request, and what the server does about it. */
export interface Step {
  /** To which of the paths it goes. */
  path: number
  /** Turns of the event loop between the outcome before it and this request; 0: it is sent from within that outcome. */
  gap: number
  /** How long its body is at least. */
  size: number
  /**
   * What the server writes on the connection of the request before, although nobody asked for it: right before this request
   * is sent, or right behind that, in the same turn; `seen`: before it, and the client has read it.
   */
  unasked: { when: 'before' | 'behind' | 'seen'; text: string; end: Ending } | null
  /** Bursts of segments, or of TLS records: those of one burst are found together; the next comes when they were read. */
  answer: readonly (readonly string[])[]
  /** How the connection ends behind an answer that is not whole by then; `keep`: as `fin`. */
  end: Ending
  /** It ends in the turn of the last burst, whole or not. */
  endsAtOnce: boolean
}

/** How a server behaves towards one client that sends it some requests, one after another. */
export interface Script {
  secure: Secure
  /** Written on the first connection as soon as it is there. Plain only. */
  early: string
  steps: readonly Step[]
}

/** What a client made of one request. */
export interface Result {
  kind: string
  status: number | null
  /** What is kept of it, in Latin-1. */
  body: string | null
  retryAfterMs: number | null
  /** The connection on which the server read this request first had carried another one. */
  isReused: boolean
  /** How many times the server read this request. */
  sent: number
  /** All that the server wrote on them as its answer, after it had read this very request. */
  answered: string
  /** For people. */
  detail: string | null
}

export const simple = (status: number, body = 'ok'): string =>
  `HTTP/1.1 ${status} -\r\nContent-Length: ${body.length}\r\n\r\n${body}`

/** The status of the answer to a request that came once more, on another connection. */
export const againStatus = 298

/** Without TIME_WAIT, since there would be thousands. libuv resets no socket that is being shut down, and keeps its handle. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}

const settleTurns = 4
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const turns = async (count: number): Promise<void> => {
  for (let left = count; left > 0; left--) await turn()
}

/** A client whose sockets can be looked at. */
export interface Client {
  transport: WebhookTransport
  /** By local port. */
  clientSockets: Map<number, Socket>
  /** Of the servers that it can be sent to. */
  contexts: ReadonlyMap<Secure, SecureContext | null>
}

export async function openClient(
  t: TestContext,
  name: ClientName,
  authority: TestAuthority,
): Promise<Client> {
  const base = await httpClients[name]()
  const clientSockets = new Map<number, Socket>()
  /** What has been read is asked of the client's own socket. */
  const dialOf =
    (dial: Dial): Dial =>
    (origin, dialed, options) => {
      const onConnected = dialed.onConnected.bind(dialed)
      dialed.onConnected = (socket) => {
        const { localPort } = socket
        clientSockets.set(localPort!, socket)
        socket.once('close', () => clientSockets.delete(localPort!))
        onConnected(socket)
      }
      return dial(origin, dialed, options)
    }
  const observed: HttpClient = new Proxy(base, {
    construct: (target, [origin, parts, owner]: ConstructorParameters<HttpClient>) =>
      new target(origin, { ...parts, dial: dialOf(parts.dial) }, owner),
  })
  const transport = createWebhookTransport({
    ...{ client: observed, allowedNetworks: loopback, ca: authority.ca, timeoutMs: 30_000 },
    ...{ now: () => 1_700_000_000_000, steadyNow: () => 0 },
  })
  t.after(() => transport.close(0))
  const certificate = await authority.issue()
  const contextOf = (version: SecureVersion) =>
    createSecureContext({ ...certificate, minVersion: version, maxVersion: version })
  const contexts = new Map<Secure, SecureContext | null>([
    [null, null],
    ['TLSv1.2', contextOf('TLSv1.2')],
    ['TLSv1.3', contextOf('TLSv1.3')],
  ])
  return { transport, clientSockets, contexts }
}

/** Plays scripts to one client, on real sockets over loopback. */
export class ScriptedServer {
  readonly #transport: WebhookTransport
  readonly #clientSockets: Map<number, Socket>
  readonly #servers: Map<Secure, Server>
  readonly #open = new Set<Socket>()
  #play: Play | null = null

  private constructor(
    transport: WebhookTransport,
    clientSockets: Map<number, Socket>,
    servers: Map<Secure, Server>,
  ) {
    this.#transport = transport
    this.#clientSockets = clientSockets
    this.#servers = servers
  }

  /** For one script at a time. */
  static async start(
    t: TestContext,
    { transport, clientSockets, contexts }: Client,
  ): Promise<ScriptedServer> {
    const servers = new Map<Secure, Server>()
    const scripted = new ScriptedServer(transport, clientSockets, servers)
    for (const [secure, context] of contexts) {
      const server = createServer({ allowHalfOpen: true, noDelay: true }, (raw) => {
        scripted.#open.add(raw)
        raw.on('error', () => {}).on('close', () => scripted.#open.delete(raw))
        if (scripted.#play === null) reset(raw)
        else if (context === null) scripted.#play.onConnection(raw, raw)
        else {
          const secured = new OnePieceSocket(raw, context)
          secured.on('error', () => raw.destroy())
          raw.on('close', () => secured.destroy())
          secured.once('secure', () => scripted.#play?.onConnection(raw, secured))
        }
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      servers.set(secure, server)
    }
    t.after(() => {
      for (const server of servers.values()) server.close()
    })
    return scripted
  }

  /** `patient`: until what is unasked has arrived; it takes some ms each time. */
  async play(script: Script, patient = false): Promise<Result[]> {
    const { port } = this.#servers.get(script.secure)!.address() as { port: number }
    const origin = `http${script.secure ? 's' : ''}://127.0.0.1:${port}`
    const play = new Play(script, this.#transport, origin, this.#clientSockets, patient)
    this.#play = play
    const results = await play.run()
    this.#play = null
    for (const socket of this.#open) reset(socket)
    return results
  }
}

/** The server's side of one connection. */
interface Accepted {
  number: number
  raw: Socket
  socket: Socket
  /** Of the client. */
  other: Socket | null
  come: string
  written: number
  ended: boolean
}

/** One script that is played. */
class Play {
  readonly #script: Script
  readonly #transport: WebhookTransport
  readonly #origin: string
  readonly #clientSockets: Map<number, Socket>
  readonly #patient: boolean
  readonly #accepted: Accepted[] = []
  readonly #results: Result[] = []
  /** By request, in order. */
  readonly #connections: number[][]
  readonly #used = new Set<number>()
  readonly #answered: string[]
  /** That of the request which was read last. */
  #last: Accepted | null = null
  #plays = 0

  constructor(
    script: Script,
    transport: WebhookTransport,
    origin: string,
    clientSockets: Map<number, Socket>,
    patient: boolean,
  ) {
    this.#script = script
    this.#transport = transport
    this.#origin = origin
    this.#clientSockets = clientSockets
    this.#patient = patient
    this.#connections = script.steps.map(() => [])
    this.#answered = script.steps.map(() => '')
  }

  async run(): Promise<Result[]> {
    const { steps } = this.#script
    const endpoints = [0, 1, 2].map((path) =>
      this.#transport.open({ url: `${this.#origin}/${path}`, headers: {} }),
    )
    await new Promise<void>((resolve) => {
      const next = (number: number): void => {
        if (number === steps.length) {
          resolve()
          return
        }
        const { unasked, path, size } = steps[number]!
        const send = () => {
          endpoints[path]!.send(requestOf(`${number} ${'x'.repeat(size)}`), {
            onOutcome: (outcome) => {
              this.#onOutcome(number, outcome)
              const gap = steps[number + 1]?.gap ?? 1
              if (gap === 0) next(number + 1)
              else void turns(gap).then(() => next(number + 1))
            },
          })
        }
        const last = this.#last
        if (unasked === null || last === null) send()
        else if (unasked.when === 'behind') {
          send()
          this.#writeUnasked(last, unasked)
        } else {
          this.#writeUnasked(last, unasked)
          if (unasked.when === 'before') send()
          else void this.#untilRead(last).then(send)
        }
      }
      next(0)
    })
    // A server's request that is still being answered stops by itself: its outcome is there.
    while (this.#plays > 0) await turn()
    for (const endpoint of endpoints) endpoint.close()
    return this.#results
  }

  onConnection(raw: Socket, socket: Socket): void {
    const accepted: Accepted = {
      ...{ number: this.#accepted.length, raw, socket, other: null },
      ...{ come: '', written: 0, ended: false },
    }
    this.#accepted.push(accepted)
    if (accepted.number === 0 && this.#script.early !== '') this.#write(accepted, this.#script.early)
    socket.on('data', (data: Buffer) => {
      accepted.come += data.toString('latin1')
      const request = /\r\n\r\n(\d+) x*$/.exec(accepted.come)
      const length = /^content-length: (\d+)$/im.exec(accepted.come)
      if (!request || !length || accepted.come.length < request.index + 4 + Number(length[1])) return
      accepted.come = ''
      this.#last = accepted
      void this.#answer(accepted, Number(request[1]))
    })
  }

  #onOutcome(number: number, { kind, status, body, retryAfterMs, detail }: Outcome): void {
    const connections = this.#connections[number]!
    const [first = -1] = connections
    this.#results.push({
      ...{ kind, status, retryAfterMs, detail },
      body: body && Buffer.from(body).toString('latin1'),
      isReused: this.#used.has(first),
      sent: connections.length,
      answered: this.#answered[number]!,
    })
    for (const connection of connections) this.#used.add(connection)
  }

  #write(accepted: Accepted, text: string): void {
    if (accepted.ended || text === '') return
    accepted.written += text.length
    accepted.socket.write(text, 'latin1')
  }

  #end(accepted: Accepted, end: Ending): void {
    if (accepted.ended || end === 'keep') return
    accepted.ended = true
    if (end === 'fin') accepted.socket.end()
    else reset(accepted.raw)
  }

  #writeUnasked(accepted: Accepted, { text, end }: { text: string; end: Ending }): void {
    const other = this.#otherOf(accepted)
    if (accepted.raw.destroyed || !other || other.destroyed) return
    this.#write(accepted, text)
    if (this.#patient && !accepted.ended) untilArrived(accepted.raw)
    this.#end(accepted, end)
  }

  async #answer(accepted: Accepted, number: number): Promise<void> {
    this.#plays++
    const isOver = () => this.#results.length > number
    const isFirst = this.#connections[number]!.push(accepted.number) === 1
    // It is sent once more because the connection before was of no use: it is answered plainly.
    const { answer, end, endsAtOnce } = isFirst
      ? this.#script.steps[number]!
      : { answer: [[simple(againStatus)]], end: 'keep' as const, endsAtOnce: false }
    for (const [index, burst] of answer.entries()) {
      if (isOver()) break
      this.#answered[number] += burst.join('')
      await this.#writeBurst(accepted, burst)
      if (index === answer.length - 1 && endsAtOnce) this.#end(accepted, end)
      await this.#untilRead(accepted)
    }
    // Nothing more comes: it would wait until its deadline.
    if (!isOver()) this.#end(accepted, end === 'keep' ? 'fin' : end)
    this.#plays--
  }

  async #writeBurst(accepted: Accepted, burst: readonly string[]): Promise<void> {
    const { socket } = accepted
    const write = () => {
      for (const each of burst) this.#write(accepted, each)
    }
    if (burst.length < 2 || !(socket instanceof OnePieceSocket)) write()
    else await new Promise<void>((resolve) => socket.inOnePiece(write, resolve))
  }

  /** The client's socket; null once it is closed. */
  #otherOf(accepted: Accepted): Socket | null {
    return (accepted.other ??= this.#clientSockets.get(accepted.raw.remotePort!) ?? null)
  }

  /** Until the client has read all that was written, or has done with the connection. */
  async #untilRead(accepted: Accepted): Promise<void> {
    const other = this.#otherOf(accepted)
    while (other && !other.destroyed && !accepted.raw.destroyed && other.bytesRead < accepted.written)
      await turn()
    await turns(settleTurns)
  }
}
