import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { addAbortSignal } from 'node:stream'
import { Command } from 'commander'
import type { Admin } from 'kafkajs'
import { withAdmin } from '../adapters/kafka/admin/with-admin.ts'
import { ProduceFailure } from '../adapters/kafka/producer/partition-write.ts'
import { fetchRange } from '../adapters/kafka/read/topic-offsets.ts'
import { requirePermissions } from '../adapters/kafka/secure/require-permissions.ts'
import { CallWriter } from '../adapters/kafka/write/call-writer.ts'
import { readTrackingCall } from '../core/call/tracking-call.ts'
import type { CallFault } from '../core/call/tracking-fields.ts'
import { sourceOf } from '../core/call/built-in-source.ts'
import type { Permission } from '../core/permissions.ts'
import { topicNames } from '../core/topics.ts'
import { PostriderError, messageOf } from '../errors.ts'
import { requireTopics } from './check-start.ts'
import { withOpen, loadContext, runAction, type Context } from './context.ts'
import { openSettings } from './deployment.ts'
import { goOnUnread } from './fail.ts'
import { sizeOf, usageError } from './flags.ts'
import { io, pathOf, stopSignal } from './io.ts'
import { count, print, printAside, printJson, ProgressBar } from './terminal.ts'

interface Flags {
  source?: string
  json?: boolean
}

export function produceCommand(): Command {
  return new Command('produce')
    .description(
      'Writes calls to analytics.calls: one JSON object a line, in the shape of the items of /v1/batch. ' +
        'What a line leaves out is filled in: timestamp (now), messageId. A bad line is reported with its ' +
        'number and does not stop the rest; the exit code is then 1.',
    )
    .argument('[file]', 'a file of JSON lines; - or nothing for stdin')
    .option(
      '--source <id>',
      'the source of lines that have no sourceId of their own; a warning says if there is none of this id',
    )
    .option('--json', 'print JSON lines: one for each bad line, and the totals')
    .addHelpText(
      'after',
      `\nExample:\n  echo '{"type":"track","userId":"u-1","event":"Signed Up","properties":{"plan":"pro"}}' | postrider produce --source shop`,
    )
    .action(
      runAction(async (file: string | undefined, flags: Flags, command: Command) => {
        await produce(loadContext(command), file ?? '-', flags)
      }),
    )
}

async function produce(context: Context, file: string, flags: Flags): Promise<void> {
  const { kafka, log, topics, codecs } = context
  const { calls } = codecs
  goOnUnread()
  const totalBytes = file === '-' ? null : sizeOf(file, 'a file of JSON lines')
  await calls.ready()
  await checkTopic(context, topics.calls)
  const writer = new CallWriter(kafka, topics.calls, calls, log)
  const progress = new ProduceProgress(totalBytes, flags.json ?? false)
  try {
    await writer.connect()
    const looking = new AbortController()
    const warned = warnOf(flags.source, context, progress, looking.signal)
    const stoppedAfter = await writeLines(file, flags.source ?? null, writer, progress).catch(
      (error: unknown) => {
        looking.abort()
        throw error
      },
    )
    if (stoppedAfter !== null) looking.abort()
    await warned
    progress.stop()
    const { bad } = progress
    report(topics.calls, { produced: writer.written, bad, stoppedAfter }, flags.json ?? false)
  } finally {
    progress.stop()
    writer.close()
  }
}

/** How long the settings may take to be read. */
const settingsMs = 15_000

/**
 * Says so where calls of this source are not delivered. Beside the writing, which needs none of it: who may write calls
 * may not be allowed to read settings.
 */
async function warnOf(
  sourceId: string | undefined,
  context: Context,
  progress: ProduceProgress,
  signal: AbortSignal,
): Promise<void> {
  if (sourceId === undefined) return
  try {
    await fetchRange(context.kafka, topicNames(context.config.topicPrefix).settings)
    const quiet = { ...context, kafka: context.kafka, log: context.log.child({}, { level: 'silent' }) }
    await withOpen(openSettings(quiet), async (settings) => {
      await settings.start(AbortSignal.any([signal, AbortSignal.timeout(settingsMs)]), 'look')
      const source = sourceOf(settings.state, sourceId)
      if (!source)
        progress.note(
          `source "${sourceId}" does not exist, so its calls become dead letters (unknown_source): create it with \`postrider sources create --id ${sourceId} --name …\`, and replay them`,
        )
      else if (!source.enabled)
        progress.note(
          `source "${sourceId}" is disabled, so its calls are skipped: \`postrider sources enable ${sourceId}\``,
        )
    })
  } catch {
    // Then nothing is known of it.
  }
}

/** The number of the last line that was read, when it is stopped before the end; else null. */
async function writeLines(
  file: string,
  sourceId: string | null,
  writer: CallWriter,
  progress: ProduceProgress,
): Promise<number | null> {
  const signal = stopSignal()
  if (file === '-' && io().stdin.isTTY)
    printAside('Reading from the terminal: one JSON object a line, Ctrl-D ends.')
  const input = file === '-' ? io().stdin : createReadStream(pathOf(file))
  let last = 0
  try {
    for await (const line of linesOf(addAbortSignal(signal, input))) {
      const { number } = line
      last = number
      if (line.fault) progress.badLine(number, line.fault.code, line.fault.message)
      else await writeLine(line.text, number, sourceId, writer, progress)
      progress.update(writer.written, line.bytesRead)
    }
    await flush(writer)
    return null
  } catch (error) {
    if (!signal.aborted || (error instanceof PostriderError && error.code === 'kafka_unavailable'))
      throw error
    await flush(writer)
    return last
  }
}

async function writeLine(
  text: string,
  number: number,
  sourceId: string | null,
  writer: CallWriter,
  progress: ProduceProgress,
): Promise<void> {
  const { call, fault } = readTrackingCall(text, {
    sourceId,
    receivedAt: Date.now(),
    newMessageId: randomUUID,
  })
  if (fault) {
    // The same would be wrong with every line.
    if (fault.code === 'source_required')
      throw usageError(`line ${number} names no source: give --source <id>`)
    progress.badLine(number, fault.code, fault.message)
    return
  }
  if ((await orUnavailable(writer, writer.add(call, number))) === 'too_large')
    progress.badLine(number, 'message_too_large', 'the call is larger than Kafka takes (1 MB)')
}

const flush = (writer: CallWriter): Promise<void> => orUnavailable(writer, writer.flush())

async function orUnavailable<T>(writer: CallWriter, writing: Promise<T>): Promise<T> {
  try {
    return await writing
  } catch (error) {
    if (!(error instanceof ProduceFailure)) throw error
    throw new PostriderError(
      'kafka_unavailable',
      `Kafka did not take the calls from line ${writer.firstUnwritten ?? 1} on: ${messageOf(error)}. ${writer.written} were produced before; go on from that line once Kafka is back`,
      { cause: error },
    )
  }
}

async function checkTopic({ config, kafka, log }: Context, topic: string): Promise<void> {
  const needs = (['WRITE', 'DESCRIBE_CONFIGS'] as const).map((operation): Permission => ({
    operation,
    resource: 'topic',
    name: topic,
    isPrefix: false,
  }))
  const check = async (admin: Admin): Promise<void> => {
    await requirePermissions(kafka, needs, log)
    await requireTopics(kafka, admin, config, [topic])
  }
  await withAdmin(kafka, check, { needs })
}

function report(
  topic: string,
  { produced, bad, stoppedAfter }: { produced: number; bad: number; stoppedAfter: number | null },
  json: boolean,
): void {
  if (json) {
    printJson({ topic, produced, bad, ...(stoppedAfter === null ? {} : { stoppedAfterLine: stoppedAfter }) })
  } else {
    const badLines = bad === 0 ? '' : `, ${count(bad, 'bad line')} left out`
    const stopped = stoppedAfter === null ? '' : `; stopped after line ${stoppedAfter}`
    print(`${count(produced, 'call')} produced to ${topic}${badLines}${stopped}`)
  }
  if (stoppedAfter !== null) io().exitCode = 130
  else if (bad > 0) io().exitCode = 1
}

/** Beyond any call that Kafka takes; longer lines are passed over without being held in memory. */
export const maxLineBytes = 4 * 1_048_576

export type Line = {
  /** From 1. */
  number: number
  /** Read so far, this line included. */
  bytesRead: number
} & ({ text: string; fault: null } | { text: null; fault: CallFault })

const tooLong: CallFault = { code: 'message_too_large', message: `more than ${maxLineBytes} bytes` }
const notUtf8: CallFault = { code: 'invalid_json', message: 'the line is not UTF-8' }

const lineFeed = 0x0a
const byteOrderMark = '\ufeff'

/**
 * The lines of a file or of stdin. Split at line feeds alone: Node's own readline splits at U+2028 too, which
 * JSON allows within a string. Empty lines are counted and left out.
 */
export async function* linesOf(input: AsyncIterable<Buffer>): AsyncGenerator<Line, void, undefined> {
  let parts: Buffer[] = []
  let held = 0
  let number = 0
  let bytesRead = 0
  const take = (): Line | null => {
    number++
    const bytes = Buffer.concat(parts)
    const fault = held > maxLineBytes ? tooLong : isUtf8(bytes) ? null : notUtf8
    parts = []
    held = 0
    if (fault) return { number, text: null, fault, bytesRead }
    let text = bytes.toString('utf8')
    if (number === 1 && text.startsWith(byteOrderMark)) text = text.slice(1)
    return text.trim() === '' ? null : { number, text, fault, bytesRead }
  }
  const hold = (part: Buffer): void => {
    held += part.length
    if (held <= maxLineBytes) parts.push(part)
    else parts = []
  }
  for await (const chunk of input) {
    let from = 0
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      hold(chunk.subarray(from, end))
      bytesRead += end + 1 - from
      from = end + 1
      const line = take()
      if (line) yield line
    }
    hold(chunk.subarray(from))
    bytesRead += chunk.length - from
  }
  if (held > 0) {
    const line = take()
    if (line) yield line
  }
}

/** Erases the line that the bar stands on; it draws itself again with its next update. */
const eraseLine = '\r\u001b[K'

/** What `produce` shows while it runs: a bar, and every bad line at once. */
export class ProduceProgress {
  bad = 0
  readonly #json: boolean
  readonly #totalBytes: number | null
  readonly #bar = new ProgressBar()

  /** Without a size (stdin) only the count is shown. */
  constructor(totalBytes: number | null, json: boolean) {
    this.#json = json
    this.#totalBytes = totalBytes
    this.update(0, 0)
  }

  update(calls: number, bytesRead: number): void {
    const format =
      this.#totalBytes === null
        ? '{calls} calls, {bad} bad lines, {duration_formatted}'
        : '{bar} {percentage}%  {calls} calls, {bad} bad lines, {eta_formatted} left'
    this.#bar.show(format, bytesRead, this.#totalBytes ?? 0, { calls, bad: this.bad })
  }

  badLine(number: number, code: string, message: string): void {
    this.bad++
    if (this.#json) printJson({ line: number, code, message })
    else printAside(`${this.#bar.isShown ? eraseLine : ''}line ${number}: ${code}: ${message}`)
  }

  /** For people, also with --json. */
  note(message: string): void {
    printAside(`${this.#bar.isShown ? eraseLine : ''}postrider: ${message}`)
  }

  /** Idempotent. */
  stop(): void {
    this.#bar.stop()
  }
}
