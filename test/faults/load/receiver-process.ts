// The receivers, in a process of their own: faults are for others. It is told by IPC what to be, writes a line for
// each request that was read whole to a file, and ends with its parent.
import { createHash, createHmac } from 'node:crypto'
import { createWriteStream, type WriteStream } from 'node:fs'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { newAuthority, selfSigned } from '../../support/secured/certificates.ts'
import { chooseAnswer, give, type AnswerKind } from './answers.ts'
import { crossesAnswer, createUnaskedServer } from './unasked-answers.ts'
import { destinations, isPickedOut, sideDestinations, type Behaviour } from './destinations.ts'
import { ConnectProxy } from './connect-proxy.ts'
import { propertiesOf, userOf } from './load.ts'
import { movingAddresses } from './moving-host.ts'
import type { GoesAway, Outage } from './outages.ts'
import { Random } from '../random.ts'
import { sentHeader } from './sent-header.ts'
import { TokenEndpoint } from './token-endpoint.ts'

export type ToReceivers =
  | { kind: 'begin'; seed: number; patience: number; file: string }
  /** Signatures by any of these are right from now on. */
  | { kind: 'secrets'; destination: string; secrets: string[] }
  /** What was broken takes everything from now on. */
  | { kind: 'fix' }
  /** The name of what moves leads to this address from now on. */
  | { kind: 'move'; address: string }
  /** Null: it is back. */
  | { kind: 'away'; what: GoesAway; outage: Outage | null }
  | { kind: 'finish' }

export type FromReceivers =
  | ({ kind: 'ready' } & ReceiverPorts & { ca: string })
  | {
      kind: 'requests'
      count: number
      wrong: number
      sinceMove: SinceMove
      takenAt: Record<GoesAway, number>
    }
  | { kind: 'done' }

export interface ReceiverPorts {
  http: number
  tls: number
  resets: number
  unasked: number
  moving: number
  tokens: number
  proxy: number
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
/** Of destinations that numbered calls are for. */
const sourceAt = new Map<string, string>(
  destinations.flatMap(({ id, urls, source }) => urls.map((_, url) => [`/${id}/${url}`, source] as const)),
)
const batchedPaths = new Set<string>(
  destinations.flatMap(({ id, urls, batch }) =>
    batch === null ? [] : urls.map((_, url) => `/${id}/${url}`),
  ),
)
const secrets = new Map<string, string[]>()
/** How often each call came to `fifth` and to `stumbles`. */
const seen = new Map<number, number>()
const tokens = new TokenEndpoint()
const proxy = new ConnectProxy()
/** When a call was taken that needed it, epoch ms. */
const takenAt: Record<GoesAway, number> = { 'token endpoint': -1, proxy: -1 }
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
function faultOf(
  message: IncomingMessage,
  { body, held, behaviour, sentAt }: { body: Buffer; held: Held[]; behaviour: Behaviour; sentAt: number },
): string | null {
  if (behaviour === 'proxied' && !proxy.isOwn(message.socket.remotePort)) return 'not-through-the-proxy'
  if (behaviour === 'login') {
    const fault = tokens.faultOf(message.headers.authorization, sentAt)
    if (fault !== null) return fault
  }
  const signature = signatureOf(message, body)
  const expected = signedPaths.has(message.url!) ? 'valid' : 'absent'
  if (signature !== expected) return `signature-${signature}`
  if (message.method !== 'POST') return `method-${message.method}`
  if (message.headers[sentHeader] === undefined) return 'not-from-a-forwarder'
  const id = String(message.headers['idempotency-key'])
  if (batchedPaths.has(message.url!) && !/^[0-9a-f]{32}$/.test(id)) return 'another-key'
  return (
    held.map((each) => bodyFaultOf(each, sourceAt.get(message.url!))).find((fault) => fault !== null) ?? null
  )
}

/**
 * A numbered call is known by its number: it has the properties and the user that were sent.
 * @param source of the destination; undefined where it is none of numbered calls
 */
function bodyFaultOf({ id, call }: Held, source: string | undefined): string | null {
  // A delete names nothing but its user.
  if (source === undefined && call.type === 'delete' && call.messageId === undefined) return null
  if (!id.startsWith(`${call.messageId}:`)) return 'another-body'
  if (source === undefined) return null
  const seq = seqOf({ id })
  if (call.userId !== userOf(seq, source)) return 'another-user'
  return isDeepStrictEqual(call.properties, propertiesOf(seq)) ? null : 'other-properties'
}

/** A delivery that a request holds. */
interface Held {
  id: string
  body: string
  call: { type?: string; messageId?: string; userId?: string; properties?: unknown }
}

/** The one delivery of a request, or all those of a batch. Throws where a body is none. */
function heldIn(message: IncomingMessage, body: Buffer): [Held, ...Held[]] {
  const text = body.toString()
  if (!batchedPaths.has(message.url!)) {
    const call = JSON.parse(text) as Held['call']
    return [{ id: String(message.headers['idempotency-key']), body: text, call }]
  }
  const calls = JSON.parse(text) as Held['call'][]
  const suffix = `:${message.url!.split('/')[1]!}`
  return calls.map((call) => ({ id: call.messageId + suffix, body: JSON.stringify(call), call })) as [Held]
}

const seqOf = ({ id }: Pick<Held, 'id'>): number => Number(id.slice(1, id.indexOf(':')))

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

/** The calls that lie whole in the first bytes of a batch. */
function wholeIn(message: IncomingMessage, part: Buffer): Held[] {
  for (let end = part.lastIndexOf('},{'); end > 0; end = part.lastIndexOf('},{', end - 1))
    try {
      return heldIn(message, Buffer.concat([part.subarray(0, end + 1), Buffer.from(']')]))
    } catch {
      // It was no end of a call, but of something in one.
    }
  return []
}

function note(
  { url, headers }: IncomingMessage,
  held: readonly Held[],
  { readAt, kind, fault }: { readAt: number; kind: AnswerKind; fault: string | null },
): void {
  count++
  const [sentAt, sender] = String(headers[sentHeader]).split('/')
  for (const { id, body } of held) {
    const hash = createHash('sha1').update(body).digest('hex').slice(0, 8)
    file?.write(`${sentAt} ${readAt} ${sender} ${url} ${kind} ${hash} ${fault ?? '-'} ${id}\n`)
  }
}

function onRequest(message: IncomingMessage, response: ServerResponse): void {
  const behaviour = behaviours.get(message.url!)
  const isCut = behaviour === 'cuts' && random.chance(0.1)
  const cutAt = isCut ? Math.ceil(Number(message.headers['content-length']) / 2) : Infinity
  const chunks: Buffer[] = []
  let length = 0
  message.on('data', (chunk: Buffer) => {
    const before = length
    chunks.push(chunk)
    length += chunk.length
    if (before >= cutAt || length < cutAt) return
    const held = wholeIn(message, Buffer.concat(chunks).subarray(0, cutAt))
    note(message, held, { readAt: Date.now(), kind: 'cutRequest', fault: null })
    give('cutRequest', response, random)
  })
  message.on('error', () => {})
  response.on('error', () => {})
  message.on('end', () => {
    if (isCut) return
    const readAt = Date.now()
    const sentAt = Number(String(message.headers[sentHeader]).split('/')[0])
    const body = Buffer.concat(chunks)
    let fault: string | null
    let held: [Held, ...Held[]]
    try {
      held = heldIn(message, body)
      fault = behaviour ? faultOf(message, { body, held, behaviour, sentAt }) : 'unknown-path'
    } catch {
      held = [{ id: String(message.headers['idempotency-key']), body: '', call: {} }]
      fault = 'no-json'
    }
    // One that is not wanted decides for all.
    const seq = seqOf(held.find((each) => isPickedOut(seqOf(each))) ?? held[0])
    if (fault) wrong++
    const timesBefore = seen.get(seq) ?? 0
    if (behaviour === 'fifth' || behaviour === 'stumbles') seen.set(seq, timesBefore + 1)
    const nowMs = performance.now() - beganAt
    const away = behaviour === 'moving' ? awayAnswer(message.socket) : null
    const isUnknowable = crossesAnswer(message.socket, sentAt, patience)
    const kind: AnswerKind = chooseAnswer(behaviour ?? 'refuses', {
      ...{ seq, timesBefore, isFixed, away, isUnknowable, nowMs, random },
      isTokenGood: tokens.isGood(message.headers.authorization),
    })
    if (behaviour === 'login' && kind === 'ok') takenAt['token endpoint'] = readAt
    if (behaviour === 'proxied') takenAt.proxy = readAt
    if (away !== null) sinceMove.lastAtOld = readAt
    else if (behaviour === 'moving') sinceMove.taken++
    note(message, held, { readAt, kind, fault })
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
    tokens: await tokens.start(),
    proxy: await proxy.start(),
  }
  setInterval(() => tell({ kind: 'requests', count, wrong, sinceMove, takenAt }), 500)
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
  else if (message.kind === 'away') void (message.what === 'proxy' ? proxy : tokens).become(message.outage)
  else file?.end(() => tell({ kind: 'done' }))
})
process.on('disconnect', () => process.exit(0))
// Signals to the whole group are for the parent, which still wants what was written.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
