import type { Command } from 'commander'
import type { WhenHeld } from '../../adapters/folded-log/settings-log.ts'
import { fetchRange } from '../../adapters/kafka/read/topic-offsets.ts'
import { PostriderError } from '../../errors.ts'
import { checked, RequestRefused, type FieldFault } from '../../operators/check.ts'
import type { Operation, SessionGate, StreamAnswer } from '../../operators/operation.ts'
import type { ConsoleServices } from '../../operators/services.ts'
import { commandActor } from '../../operators/settings/actor.ts'
import type { Statistics } from '../../operators/statistics/follower.ts'
import { loadContext, type Context } from '../context.ts'
import { goOnUnread } from '../fail.ts'
import { usageError } from '../flags.ts'
import { stopSignal } from '../io.ts'
import { openServices, type OpenServices } from '../services.ts'
import { withProgress } from '../terminal.ts'

/** What a command asks an operation for. */
export interface AskedOperation {
  params?: Readonly<Record<string, string>>
  query?: Readonly<Record<string, unknown>>
  body?: unknown
  /** In place of a body. */
  lines?: AsyncIterable<Uint8Array>
  contentType?: string
  /** Refused if it was changed since. */
  ifMatch?: string | null
}

export interface OperationOptions {
  services: ConsoleServices
  signal: AbortSignal
  onProgress?: (state: object) => void
  /** What people call a field: `--max-rate`. */
  nameOf(field: string): string
}

/** Does in this process what a request to a console would have done, as an admin. Throws `usage` that names each wrong flag. */
export async function perform(
  operation: Operation,
  asked: AskedOperation,
  options: OperationOptions,
): Promise<unknown> {
  const answer = await begin(operation, asked, options)
  if ('stream' in answer) throw new PostriderError('invariant', `${operation.id} has no end`)
  if ('status' in answer) return answer.body
  return named(options, () => answer.run(options.onProgress ?? (() => {})))
}

/** The same for an operation that streams. */
export async function performStream(
  operation: Operation,
  asked: AskedOperation,
  options: OperationOptions,
): Promise<StreamAnswer> {
  const answer = await begin(operation, asked, options)
  if ('stream' in answer) return answer
  throw new PostriderError('invariant', `${operation.id} is no stream`)
}

const begin = (operation: Operation, asked: AskedOperation, options: OperationOptions) =>
  named(options, () => {
    const { params = {}, query = {}, body } = asked
    const given = checked(operation, { params, query, body: operation.body && (body ?? {}) })
    return operation.handle(
      {
        ...given,
        caller: { name: commandActor(), role: 'admin', only: null },
        session: noSession,
        lines: asked.lines ?? nothing(),
        contentType: asked.contentType ?? null,
        ifMatch: asked.ifMatch ?? null,
        idempotencyKey: null,
        stopping: options.signal,
        gone: options.signal,
      },
      options.services,
    )
  })

/**
 * Throws `usage` that names each flag whose value its operation's schemas refuse: before anything is connected. What is
 * missing is not looked at, for a command may add it later.
 */
export function refuseWrongValues(
  operation: Operation,
  asked: AskedOperation,
  nameOf: OperationOptions['nameOf'],
): void {
  const { params = {}, query = {}, body = {} } = asked
  try {
    checked(operation, { params, query, body: operation.body && body })
  } catch (error) {
    if (!(error instanceof RequestRefused)) throw error
    const given = { ...params, ...query, ...(body as object) }
    const { fields } = error.answer.body as RefusedBody
    const wrong = fields.filter(({ field }) => Object.hasOwn(given, field.split('.')[0]!))
    if (wrong.length > 0) throw usageError(faultsText(wrong, nameOf), { cause: error })
  }
}

/** What the API refuses, by the names of flags. What a rule refuses says whose it is already. */
async function named<T>({ nameOf }: OperationOptions, work: () => Promise<T> | T): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof RequestRefused)) throw error
    const { code, message, fields } = error.answer.body as RefusedBody
    if (code !== 'invalid_request') throw new PostriderError('conflict', message, { cause: error })
    throw usageError(fields.length === 0 ? message : faultsText(fields, nameOf), { cause: error })
  }
}

const faultsText = (faults: readonly FieldFault[], nameOf: OperationOptions['nameOf']): string =>
  [...new Set(faults.map(({ field, message }) => `${nameOf(field)}: ${message}`))].join('; ')

interface RefusedBody {
  code: string
  message: string
  fields: FieldFault[]
}

const noSession: SessionGate = {
  companyLogin: null,
  begin: () => Promise.reject(new PostriderError('invariant', 'a command has no session')),
  endingCookie: () => '',
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** The settings are read from their beginning. */
const startMs = 15_000
/** A reader of a command closes soon. */
const maxWaitMs = 50
/** Short reading is not worth a bar. */
const minRecords = 20_000

export interface CommandSession extends OpenServices {
  context: Context
  /** Aborts on Ctrl-C. */
  signal: AbortSignal
}

/**
 * Runs `use` with what operations work with, and closes it whatever comes of it. The settings are read to their end
 * first, unless they are to be left `unread`. Throws `usage` for wrong settings of the command.
 */
export async function inSession<T>(
  command: Command,
  use: (session: CommandSession) => Promise<T>,
  whenHeld: WhenHeld | 'unread' = 'fail',
): Promise<T> {
  const context = loadContext(command)
  const signal = stopSignal()
  if (whenHeld === 'fail') goOnUnread()
  // A part waits for brokers for ever; a user at a terminal wants an error.
  if (whenHeld !== 'unread') await fetchRange(context.kafka, context.topics.settings)
  const open = openServices(context, {
    actor: commandActor,
    maxWaitMs,
    signal,
    readStatistics: (statistics) => countToEnd(statistics, signal),
  })
  try {
    if (whenHeld !== 'unread')
      await open.settings.start(AbortSignal.any([signal, AbortSignal.timeout(startMs)]), whenHeld)
    return await use({ ...open, context, signal })
  } catch (error) {
    // An error of ours says itself what was done, and how to go on.
    if (!signal.aborted || error instanceof PostriderError) throw error
    throw new PostriderError('local', 'stopped before its end; what was done or read stays so', {
      cause: error,
    })
  } finally {
    await open.close()
  }
}

const countToEnd = (statistics: Statistics, signal: AbortSignal): Promise<void> =>
  withProgress((bar) =>
    statistics.catchUp({
      signal,
      progress(done, total) {
        if (total >= minRecords && done % 1_000 === 0)
          bar.show('counting {bar} {value}/{total} records, {eta_formatted} left', done, total)
      },
    }),
  )
