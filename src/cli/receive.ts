import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Command, Option } from 'commander'
import { parseDuration } from '../core/duration.ts'
import { messageOf, PostriderError } from '../errors.ts'
import { runAction } from './context.ts'
import { pathOf, stopSignal } from './io.ts'
import { print, printable, printAside, printJson } from './terminal.ts'
import { untilAborted } from './part-lives.ts'
import { usageError } from './flags.ts'

/** `unchecked`: signed, but the receiver has no secret to check it by. */
export type SignatureVerdict = 'verified' | 'wrong' | 'absent' | 'unchecked'

/** What a receiver says about one request. Fields of the body are null when it has none, or is no JSON object. */
export interface ReceivedWebhook {
  /** Epoch ms. */
  at: number
  method: string
  path: string
  type: string | null
  userId: string | null
  event: string | null
  messageId: string | null
  /** How many calls a batch holds, as an array or as lines; null for what is none. */
  calls: number | null
  /** The Idempotency-Key: the same at every attempt. */
  deliveryId: string | null
  signature: SignatureVerdict
  /** What was answered. */
  status: number
  bytes: number
}

export interface ReceiverOptions {
  /** 0 picks a free one. */
  port: number
  /** Default 127.0.0.1. */
  host?: string
  /** The destination's shared secret; null when it has none. */
  secret: string | null
  /** What every request is answered, or what the next one is; default 200. */
  status?: number | (() => number)
  /** Before the answer, in ms; default 0. */
  delayMs?: number
  onRequest: (webhook: ReceivedWebhook) => void
}

export interface RunningReceiver {
  /** `http://<host>:<port>/` */
  url: string
  /** Ends open connections too. Idempotent. */
  close(): Promise<void>
}

/** Nothing that Postrider sends is larger; what is gets 413. */
const maxBodyBytes = 8 * 1024 * 1024

/**
 * Lower-case hex HMAC-SHA1 of the body's bytes, keyed with the shared secret, compared in constant time: what a
 * receiver has to do. Over the bytes as they came: JSON that was parsed and written again is other bytes.
 */
export function verifySignature(
  body: Uint8Array,
  header: string | undefined,
  secret: string | null,
): SignatureVerdict {
  if (header === undefined) return 'absent'
  if (secret === null) return 'unchecked'
  const expected = Buffer.from(createHmac('sha1', secret).update(body).digest('hex'))
  const given = Buffer.from(header)
  return given.length === expected.length && timingSafeEqual(given, expected) ? 'verified' : 'wrong'
}

/** Listens until `close()`. Rejects with PostriderError `local` when it cannot listen there. */
export async function startReceiver(options: ReceiverOptions): Promise<RunningReceiver> {
  const { port, host = '127.0.0.1', secret, status = 200, delayMs = 0, onRequest } = options
  const server = createServer((message, response) => {
    readBody(message, (body) => {
      const answered = body === null ? 413 : typeof status === 'number' ? status : status()
      onRequest(describe(message, body ?? Buffer.alloc(0), secret, answered))
      if (delayMs === 0) answer(response, answered)
      else setTimeout(() => answer(response, answered), delayMs).unref()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const hint =
        error.code === 'EADDRINUSE' ? 'is taken: give another one' : `cannot be used: ${messageOf(error)}`
      reject(new PostriderError('local', `port ${port} of ${host} ${hint}`, { cause: error }))
    })
    server.listen(port, host, resolve)
  })
  const { port: actual } = server.address() as AddressInfo
  let closed: Promise<void> | null = null
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${actual}/`,
    close() {
      closed ??= new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
      return closed
    },
  }
}

function answer(response: ServerResponse, status: number): void {
  response.on('error', () => {})
  response.writeHead(status, { 'content-type': 'text/plain' }).end(status < 300 ? 'ok\n' : '')
}

/** Null when the body is too large. */
function readBody(message: IncomingMessage, done: (body: Buffer | null) => void): void {
  const chunks: Buffer[] = []
  let size = 0
  message.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size <= maxBodyBytes) chunks.push(chunk)
    else chunks.length = 0
  })
  message.on('end', () => done(size <= maxBodyBytes ? Buffer.concat(chunks) : null))
  message.on('error', () => {})
}

function describe(
  message: IncomingMessage,
  body: Buffer,
  secret: string | null,
  status: number,
): ReceivedWebhook {
  const fields = jsonObject(body)
  const text = (name: string): string | null => {
    const value = fields[name]
    return typeof value === 'string' ? value : null
  }
  const header = (name: string): string | undefined => message.headersDistinct[name]?.[0]
  return {
    at: Date.now(),
    method: message.method ?? '',
    path: message.url ?? '',
    type: text('type'),
    userId: text('userId') ?? text('User ID') ?? text('anonymousId'),
    event: text('event') ?? text('name') ?? text('groupId'),
    messageId: text('messageId'),
    calls: callsIn(body, header('content-type')),
    deliveryId: header('idempotency-key') ?? null,
    signature: verifySignature(body, header('x-signature'), secret),
    status,
    bytes: body.length,
  }
}

function jsonObject(body: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

function callsIn(body: Buffer, contentType: string | undefined): number | null {
  const text = body.toString('utf8')
  if (contentType === 'application/x-ndjson') return text.split('\n').filter((line) => line !== '').length
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value.length : null
  } catch {
    return null
  }
}

/** What stands for its type where it is no call by itself. */
export const batchWords = ({ calls }: Pick<ReceivedWebhook, 'calls'>): string | null =>
  calls === null ? null : `batch of ${calls}`

/** One line for people: time, path, type, user, event, message id, what its signature is worth. */
export function webhookLine(webhook: ReceivedWebhook): string {
  const time = new Date(webhook.at).toISOString().slice(11, 23)
  const parts = [
    webhook.method === 'POST' ? webhook.path : `${webhook.method} ${webhook.path}`,
    webhook.type ?? batchWords(webhook) ?? `no call (${webhook.bytes} bytes)`,
    webhook.userId,
    webhook.event,
    webhook.messageId ?? webhook.deliveryId,
  ].filter((part) => part !== null)
  const answered = webhook.status === 200 ? '' : `, answered ${webhook.status}`
  return printable(`${time}  ${parts.join('  ')}  signature ${webhook.signature}${answered}`)
}

interface ReceiveFlags {
  port: string
  host: string
  secret?: string
  secretFile?: string
  status: string
  delay: string
  json?: boolean
}

export function receiveCommand(): Command {
  return new Command('receive')
    .description('Receives webhooks, checks their signatures and prints a line for each, until Ctrl-C.')
    .option('--port <port>', 'Listens here; 0 picks a free port.', '4000')
    .option('--host <address>', 'Other machines reach it only if this is changed.', '127.0.0.1')
    .addOption(
      new Option(
        '--secret <text>',
        'The destination’s shared secret. Visible to others on this machine.',
      ).conflicts('secretFile'),
    )
    .option('--secret-file <file>', 'The shared secret is what this file holds, without a last line break.')
    .option('--status <code>', 'Answers every request with this.', '200')
    .option('--delay <duration>', 'Waits so long before it answers, such as 250ms or 6s.', '0ms')
    .option('--json', 'Prints JSON lines.')
    .action(runAction((flags: ReceiveFlags) => receive(flags)))
}

async function receive(flags: ReceiveFlags): Promise<void> {
  const delayMs = parseDuration(flags.delay)
  if (delayMs === null) throw usageError(`--delay: '${flags.delay}' is not a duration such as 250ms or 6s`)
  const receiver = await startReceiver({
    port: wholeNumber('--port', flags.port, 0, 65_535),
    host: flags.host,
    secret: await secretOf(flags),
    status: wholeNumber('--status', flags.status, 200, 599),
    delayMs,
    onRequest: (webhook) => (flags.json ? printJson(webhook) : print(webhookLine(webhook))),
  })
  // Beside the output, so that what --json prints stays JSON lines.
  printAside(`Receiving at ${receiver.url} (Ctrl-C ends)`)
  await untilAborted(stopSignal())
  await receiver.close()
}

async function secretOf(flags: ReceiveFlags): Promise<string | null> {
  if (flags.secretFile === undefined) return flags.secret ?? null
  try {
    return (await readFile(pathOf(flags.secretFile), 'utf8')).replace(/\r?\n$/, '')
  } catch (error) {
    throw usageError(`--secret-file: cannot read it: ${messageOf(error)}`)
  }
}

function wholeNumber(flag: string, text: string, min: number, max: number): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < min || value > max)
    throw usageError(`${flag}: '${text}' is not a whole number from ${min} to ${max}`)
  return value
}
