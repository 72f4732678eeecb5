// What the commands of dead letters have beside their operations, and how they show it to people.
import { z } from 'zod'
import { usageError } from '../../cli/flags.ts'
import type { CommandShape } from '../../cli/operations/operation-command.ts'
import { printable, table } from '../../cli/terminal.ts'
import type { HeaderField } from '../../core/delivery/exchange.ts'
import type { ShownExchange } from '../exchange.ts'
import { fieldsOf } from '../fields.ts'
import { addJobOptions, jobText, performReplay, type JobFlags } from '../replay/command.ts'
import { textOf } from './dead-letters.ts'
import { choiceShape, periodShape } from './filter.ts'
import type { deadLetterGroupsSchema, deadLetterSummarySchema } from './operations.ts'

type Bytes = { text: string } | { base64: string }

interface Origin {
  topic: string
  partition: number
  offset: number
}

/** What stands on the page; the rest is for machines. */
export interface ShownDeadLetter {
  id: string
  failedAt: string
  reason: string | null
  detail: string | null
  origin: Origin | null
  owner?: string
  delivery?: {
    id: string
    sourceId: string
    destinationId: string
    type: string
    attempts: number
    timesScheduled: number
    firstAttemptAt: string | null
    firstScheduledAt: string | null
    endpointIds: string[]
    outcomes: {
      endpointId: string
      kind: string
      status: number | null
      durationMs: number
      at: string
      detail: string | null
    }[]
    lastResponse: { endpointId: string; status: number; durationMs: number; at: string; body: Bytes } | null
    lastExchange: (ShownExchange & { endpointId: string }) | null
    body: Bytes
    key: Bytes | null
  } | null
  omittedBytes?: number | null
  omittedSha256?: string | null
  raw?: Bytes | null
  rawKey?: Bytes | null
  /** Of one that cannot be read. */
  value?: Bytes | null
  /** Of a delivery, the oldest first. */
  earlier?: ShownDeadLetter[]
  sentAgain?: { at: string; replay: string | null; state: string; endedAt: string | null } | null
}

/** All of it, for people: of a delivery each time it failed. */
export const pageOf = (deadLetter: ShownDeadLetter): string =>
  [...(deadLetter.earlier ?? []), deadLetter].map(partOf).join('\n\n')

function partOf(deadLetter: ShownDeadLetter): string {
  const { id, failedAt, reason, detail, delivery, origin, omittedBytes, sentAgain } = deadLetter
  if (origin === null)
    return lines([
      ['dead letter', id],
      ['written', failedAt],
      ['unreadable', detail],
      ['value', deadLetter.value && readable(deadLetter.value)],
    ])
  const { lastResponse, lastExchange } = delivery ?? {}
  return lines([
    ['dead letter', id],
    ['failed', failedAt],
    ['reason', reason],
    ['detail', detail && block(detail)],
    ['sent again', sentAgain && sentAgainText(sentAgain)],
    ['delivery', delivery && printable(delivery.id)],
    ['source', delivery && printable(delivery.sourceId)],
    ['destination', delivery && printable(delivery.destinationId)],
    ['type', delivery?.type],
    ['attempts', delivery?.attempts],
    ['times scheduled', delivery?.timesScheduled],
    ['first attempt', delivery?.firstAttemptAt],
    ['first scheduled', delivery?.firstScheduledAt],
    ['URLs left', delivery && printable(delivery.endpointIds.join(' '))],
    ['origin', `${printable(origin.topic)} partition ${origin.partition} offset ${origin.offset}`],
    ['owner', deadLetter.owner && printable(deadLetter.owner)],
    ...(delivery?.outcomes ?? []).map((outcome): Line => [
      `last at ${printable(outcome.endpointId)}`,
      outcomeOf(outcome),
    ]),
    [
      'last response',
      lastResponse &&
        `${printable(lastResponse.endpointId)} ${lastResponse.status} after ${Math.round(lastResponse.durationMs)} ms, ` +
          `${lastResponse.at}${readable(lastResponse.body)}`,
    ],
    ['its headers', lastExchange?.headers && block(fieldLines(lastExchange.headers))],
    ['last request', lastExchange?.request && requestOf(lastExchange.endpointId, lastExchange.request)],
    ['left out', omittedBytes ? `${omittedBytes} bytes, SHA-256 ${deadLetter.omittedSha256}` : null],
    ['key', delivery?.key && readable(delivery.key)],
    ['body', delivery && !omittedBytes ? readable(delivery.body) : null],
    ['record’s key', deadLetter.rawKey && readable(deadLetter.rawKey)],
    ['record', deadLetter.raw && readable(deadLetter.raw)],
  ])
}

function sentAgainText({ at, replay, state, endedAt }: NonNullable<ShownDeadLetter['sentAgain']>): string {
  const by = replay === null ? '' : ` by ${printable(replay)}`
  return `${at}${by}: ${state.replaceAll('_', ' ')}${endedAt === null ? '' : ` ${endedAt}`}`
}

type Line = [label: string, value: string | number | null | undefined]

const labelWidth = 16

function lines(all: Line[]): string {
  return all
    .filter(([, value]) => value !== null && value !== undefined && value !== '')
    .map(([label, value]) => (String(value).startsWith('\n') ? label : label.padEnd(labelWidth)) + value)
    .join('\n')
}

const fieldLines = (headers: readonly HeaderField[]): string =>
  headers.map(({ name, value }) => `${name}: ${value}`).join('\n')

const requestOf = (
  urlId: string,
  { method, url, headers, bodyBytes }: NonNullable<ShownExchange['request']>,
): string =>
  `${printable(urlId)}, a body of ${bodyBytes} bytes${block(`${method} ${url}\n${fieldLines(headers)}`)}`

type Outcome = NonNullable<ShownDeadLetter['delivery']>['outcomes'][number]

function outcomeOf({ kind, status, durationMs, at, detail }: Outcome): string {
  const what = status === null ? kind : `${kind} ${status}`
  const why = detail === null ? '' : `: ${printable(detail)}`
  return `${what} after ${Math.round(durationMs)} ms, ${at}${why}`
}

/** What fits on a page of a terminal, roughly; --json has all. */
const maxHexBytes = 2_048

/** An indented block below its label: text as it is, anything else as hex. */
function readable(given: Bytes): string {
  const bytes = 'text' in given ? Buffer.from(given.text) : Buffer.from(given.base64, 'base64')
  const text = textOf(bytes)
  if (text !== null && !text.includes('\0')) return block(text)
  const hex = bytes.subarray(0, maxHexBytes).toString('hex')
  const rest = bytes.length - maxHexBytes
  const rows = hex.match(/.{1,64}/g) ?? []
  return block(
    [`${bytes.length} bytes`, ...rows, ...(rest > 0 ? [`… ${rest} more bytes; --json has all`] : [])].join(
      '\n',
    ),
  )
}

const block = (text: string): string =>
  text
    .split('\n')
    .map((line) => `\n  ${printable(line.replace(/\r$/, '').replaceAll('\t', '  '))}`)
    .join('')

type Summary = z.output<typeof deadLetterSummarySchema>
type Groups = z.output<typeof deadLetterGroupsSchema>

/** Without what is smaller than a second. */
const secondOf = (iso: string): string => iso.replace(/\.\d{3}Z$/, 'Z')

export const deadLetterShapes: Readonly<Record<string, CommandShape>> = {
  listDeadLetters: {
    none: 'no dead letters',
    isNewestFirst: true,
    row: {
      headings: ['id', 'failed', 'reason', 'destination', 'attempts', 'last attempt'],
      of: ({ id, failedAt, reason, destinationId, attempts, status }: Summary) => [
        id,
        secondOf(failedAt),
        reason ?? 'unreadable',
        destinationId ?? '-',
        attempts ?? '-',
        status ?? '-',
      ],
    },
  },
  groupDeadLetters: {
    text: ({ groups, others }: Groups) =>
      groups.length === 0
        ? 'no dead letters'
        : table(
            ['count', 'reason', 'last attempt', 'destination', 'first', 'last'],
            groups.map(({ count, settled, reason, status, destinationId, firstAt, lastAt }) => [
              settled ? `${count} (${settled} settled)` : count,
              reason ?? 'unreadable',
              String(status ?? '-'),
              destinationId ?? '-',
              secondOf(firstAt),
              secondOf(lastAt),
            ]),
          ) + (others > 0 ? `\n${others} more are of further kinds; a filter shows them` : ''),
  },
  showDeadLetter: { text: pageOf },
}

interface ReplayFlags {
  reason?: string[]
  destination?: string[]
  status?: string[]
  since?: string
  until?: string
  all?: true
  dryRun?: true
}

/** `postrider dead-letters replay`. */
export const deadLetterReplayShape: CommandShape = {
  summary: 'Send dead letters again',
  description:
    'Sends dead letters again, those that are there now, to all URLs that their destination has now, with a new retry ' +
    'window. Records that never became a delivery go back, as they were, to the topic they came from. Without ids ' +
    'and filters, --all is needed. A replay keeps the delivery’s id (Idempotency-Key) and its body with the ' +
    `messageId, so replaying twice sends twice what receivers can tell by these. ${jobText}`,
  fields: fieldsOf({ body: z.object({ ...choiceShape, ...periodShape }) }),
  addFlags(command) {
    command.argument('[id...]', 'of dead letters, or of deliveries').option('--all', 'all that there are')
    addJobOptions(command)
  },
  read(options, [given]) {
    const { all, dryRun, reason, destination, status, since, until } = options as ReplayFlags
    const ids = given as unknown as string[]
    const isFiltered = [reason, destination, status, since, until].some(Boolean)
    if (ids.length > 0 && isFiltered)
      throw usageError('give either ids or filters (--reason, --destination, --status, --since, --until)')
    const isChosen = ids.length > 0 || isFiltered
    if (all && isChosen) throw usageError('--all goes without ids and filters')
    if (!isChosen && !all && !dryRun)
      throw usageError(
        'give ids, filters (--reason, --destination, --status, --since, --until), or --all to send every dead letter again; --dry-run shows what would be sent',
      )
    const deadLetters = {
      ...(ids.length > 0 && { ids }),
      ...(reason && { reason }),
      ...(destination && { destination }),
      ...(status && { status }),
      ...(!isChosen && { all: true }),
    }
    return () => ({ body: { deadLetters, since, until, rate: (options as JobFlags).rate } })
  },
  run: performReplay,
}
