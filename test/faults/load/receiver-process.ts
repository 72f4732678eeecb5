// The receivers, in a process of their own: faults are for others. It is told by IPC what to be, writes a line for
// each request that was read whole to a file, and ends with its parent.
import { createHash, createHmac } from 'node:crypto'
import { createWriteStream, type WriteStream } from 'node:fs'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { newAuthority, selfSigned } from '../../support/secured/certificates.ts'
import { chooseAnswer, give, type AnswerKind } from './answers.ts'
import { crossesAnswer, createUnaskedServer } from './unasked-answers.ts'
import { destinations, isPickedOut, sideDestinations, type Behaviour } from './destinations.ts'
import { movingAddresses } from './moving-host.ts'
import { Random } from '../random.ts'
import { sentHeader } from './sent-header.ts'

export type ToReceivers =
  | { kind: 'begin'; seed: number; patience: number; file: string }
  /** Signatures by any of these are right from now on. */
  | { kind: 'secrets'; destination: string; secrets: string[] }
  /** What was broken takes everything from now on. */
  | { kind: 'fix' }
  /** The name of what moves leads to this address from now on. */
  | { kind: 'move'; address: string }
  | { kind: 'finish' }

export type FromReceivers =
  | ({ kind: 'ready' } & ReceiverPorts & { ca: string })
  | { kind: 'requests'; count: number; wrong: number; sinceMove: SinceMove }
  | { kind: 'done' }

export interface ReceiverPorts {
  http: number
  tls: number
  resets: number
  unasked: number
  moving: number
}

/** Requests to the host that moves, since it moved last. */
export interface SinceMove {
  taken: number
  /** When one came to its address of before, epoch ms; null: none did. */
  lastAtOld: number | null
}

/** Its parent may be on its way out. */
const tell = (message: FromReceivers) => void process.send?.(message, undefined, undefined, () => {})
const behaviours = new Map<string, Behaviour>(
  [...destinations, ...sideDestinations].flatMap(({ id, urls }) =>
    urls.map((behaviour, url) => [`/${id}/${url}`, behaviour] as const),
  ),
)
const signedPaths = new Set<string>(
  [...destinations, ...sideDestinations].flatMap(({ id, urls, signed }) =>
    signed ? urls.map((_, url) => `/${id}/${url}`) : [],
  ),
)
const batchedPaths = new Set<string>(
  destinations.flatMap(({ id, urls, batch }) =>
    batch === null ? [] : urls.map((_, url) => `/${id}/${url}`),
  ),
)
const secrets = new Map<string, string[]>()
/** Calls that came to `fifth`. */
const seen = new Set<number>()
const beganAt = performance.now()
let random = new Random(0)
let patience = 1
let file: WriteStream | null = null
let count = 0
let wrong = 0
let isFixed = false
let movingAddress: string = movingAddresses[0]
let moves = 0
/** Connections that were answered 503 by an address which the name has left. */
const failedLast = new WeakSet<Socket>()
let sinceMove: SinceMove = { taken: 0, lastAtOld: null }

function signatureOf(message: IncomingMessage, body: Buffer): 'valid' | 'wrong' | 'absent' {
  const header = message.headers['x-signature']
  if (header === undefined) return 'absent'
  const destination = message.url!.split('/')[1]!
  const signs = (secret: string) => createHmac('sha1', secret).update(body).digest('hex') === header
  return (secrets.get(destination) ?? []).some(signs) ? 'valid' : 'wrong'
}

/** Null when all is as it has to be. */
function faultOf(message: IncomingMessage, body: Buffer): string | null {
  const signature = signatureOf(message, body)
  const expected = signedPaths.has(message.url!) ? 'valid' : 'absent'
  if (signature !== expected) return `signature-${signature}`
  if (message.method !== 'POST') return `method-${message.method}`
  if (message.headers[sentHeader] === undefined) return 'not-from-a-forwarder'
  const id = String(message.headers['idempotency-key'])
  if (batchedPaths.has(message.url!)) return /^[0-9a-f]{32}$/.test(id) ? null : 'another-key'
  const { type, messageId } = JSON.parse(body.toString()) as { type: string; messageId?: string }
  // A delete names nothing but its user.
  if (type === 'delete' && messageId === undefined) return null
  return id.startsWith(`${messageId}:`) ? null : 'another-body'
}

/** A delivery that a request holds. */
interface Held {
  id: string
  body: string
}

/** The one delivery of a request, or all those of a batch. Throws where a batch is none. */
function heldIn(message: IncomingMessage, body: Buffer): [Held, ...Held[]] {
  if (!batchedPaths.has(message.url!))
    return [{ id: String(message.headers['idempotency-key']), body: body.toString() }]
  const calls = JSON.parse(body.toString()) as { messageId: string }[]
  const suffix = `:${message.url!.split('/')[1]!}`
  return calls.map((call) => ({ id: call.messageId + suffix, body: JSON.stringify(call) })) as [Held]
}

const seqOf = ({ id }: Held): number => Number(id.slice(1, id.indexOf(':')))

/**
 * Of the address that the name of what moves has left, after every other move: it takes every other request of each
 * connection. With failures alone a circuit breaker would have connections close unused, and so hide one that never retires.
 */
function awayAnswer(socket: Socket): 'movedAway' | 'takenAway' | null {
  if (socket.localAddress === movingAddress) return null
  const failed = moves % 2 === 0 || !failedLast.has(socket)
  if (failed) failedLast.add(socket)
  else failedLast.delete(socket)
  return failed ? 'movedAway' : 'takenAway'
}

function onRequest(message: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = []
  message.on('data', (chunk: Buffer) => chunks.push(chunk))
  message.on('error', () => {})
  response.on('error', () => {})
  message.on('end', () => {
    const readAt = Date.now()
    const [sentAt, sender] = String(message.headers[sentHeader]).split('/')
    const body = Buffer.concat(chunks)
    const behaviour = behaviours.get(message.url!)
    let fault: string | null
    let held: [Held, ...Held[]]
    try {
      held = heldIn(message, body)
      fault = behaviour ? faultOf(message, body) : 'unknown-path'
    } catch {
      held = [{ id: String(message.headers['idempotency-key']), body: '' }]
      fault = 'no-json'
    }
    // One that is not wanted decides for all.
    const seq = seqOf(held.find((each) => isPickedOut(seqOf(each))) ?? held[0])
    if (fault) wrong++
    const isFirst = behaviour === 'fifth' && !seen.has(seq)
    if (isFirst) seen.add(seq)
    const nowMs = performance.now() - beganAt
    const away = behaviour === 'moving' ? awayAnswer(message.socket) : null
    const isUnknowable = crossesAnswer(message.socket, Number(sentAt), patience)
    const kind: AnswerKind = chooseAnswer(behaviour ?? 'refuses', {
      ...{ seq, isFirst, isFixed, away, isUnknowable, nowMs, random },
    })
    if (away !== null) sinceMove.lastAtOld = readAt
    else if (behaviour === 'moving') sinceMove.taken++
    count++
    for (const { id, body } of held) {
      const hash = createHash('sha1').update(body).digest('hex').slice(0, 8)
      file?.write(`${sentAt} ${readAt} ${sender} ${message.url} ${kind} ${hash} ${fault ?? '-'} ${id}\n`)
    }
    const delayMs = kind === 'slow' ? random.between(200, 1_200) : kind === 'ok' ? random.between(0, 20) : 0
    if (delayMs === 0) give(kind, response, random)
    else setTimeout(() => give(kind, response, random), delayMs)
  })
}

async function listen(server: Server, { port = 0, host = '127.0.0.1' } = {}): Promise<number> {
  server.on('connection', (socket) => socket.on('error', () => {}))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: 4_096 }, resolve)
  })
  return (server.address() as AddressInfo).port
}

async function begin(seed: number, path: string): Promise<void> {
  random = new Random(seed)
  file = createWriteStream(path)
  const http = createHttpServer(onRequest)
  http.keepAliveTimeout = 60_000
  const tls = createHttpsServer(await selfSigned(), onRequest)
  tls.on('tlsClientError', () => {})
  const resets = createTcpServer((socket) => socket.resetAndDestroy())
  const authority = await newAuthority()
  const unasked = createUnaskedServer(await authority.issue(), onRequest)
  const ports: ReceiverPorts = {
    http: await listen(http),
    tls: await listen(tls),
    resets: await listen(resets),
    unasked: await listen(unasked),
    moving: await listenAtEach(movingAddresses),
  }
  setInterval(() => tell({ kind: 'requests', count, wrong, sinceMove }), 500)
  tell({ kind: 'ready', ...ports, ca: authority.ca })
}

/** One port of all these addresses. */
async function listenAtEach([first, ...others]: readonly string[]): Promise<number> {
  const create = () => {
    const server = createHttpServer(onRequest)
    server.keepAliveTimeout = 60_000
    return server
  }
  for (let tries = 1; ; tries++) {
    const begun = [create()]
    const port = await listen(begun[0]!, { host: first! })
    try {
      for (const host of others) {
        begun.push(create())
        await listen(begun.at(-1)!, { host, port })
      }
      return port
    } catch (error) {
      // At another address somebody else may have it.
      for (const server of begun) server.close()
      if (tries === 20) throw error
    }
  }
}

function moveTo(address: string): void {
  movingAddress = address
  moves++
  sinceMove = { taken: 0, lastAtOld: null }
}

process.on('message', (message: ToReceivers) => {
  if (message.kind === 'begin') {
    patience = message.patience
    void begin(message.seed, message.file)
  } else if (message.kind === 'secrets') secrets.set(message.destination, message.secrets)
  else if (message.kind === 'fix') isFixed = true
  else if (message.kind === 'move') moveTo(message.address)
  else file?.end(() => tell({ kind: 'done' }))
})
process.on('disconnect', () => process.exit(0))
// Signals to the whole group are for the parent, which still wants what was written.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
