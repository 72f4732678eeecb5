// How a dead letter is shown to people, from what the admin API answers.
import { textOf } from '../../console/dead-letters/describe.ts'
import { printable } from '../output.ts'

type Bytes = { text: string } | { base64: string }

interface Origin {
  topic: string
  partition: number
  offset: number
}

/** What stands on the page; the rest is for machines. */
export interface WholeDeadLetter {
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
  earlier?: WholeDeadLetter[]
}

/** All of it, for people: of a delivery each time it failed. */
export const pageOf = (deadLetter: WholeDeadLetter): string =>
  [...(deadLetter.earlier ?? []), deadLetter].map(partOf).join('\n\n')

function partOf(deadLetter: WholeDeadLetter): string {
  const { id, failedAt, reason, detail, delivery, origin, omittedBytes } = deadLetter
  if (origin === null)
    return lines([
      ['dead letter', id],
      ['written', failedAt],
      ['unreadable', detail],
      ['value', deadLetter.value && readable(deadLetter.value)],
    ])
  const { lastResponse } = delivery ?? {}
  return lines([
    ['dead letter', id],
    ['failed', failedAt],
    ['reason', reason],
    ['detail', detail && block(detail)],
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
    ['left out', omittedBytes ? `${omittedBytes} bytes, SHA-256 ${deadLetter.omittedSha256}` : null],
    ['key', delivery?.key && readable(delivery.key)],
    ['body', delivery && !omittedBytes ? readable(delivery.body) : null],
    ['record’s key', deadLetter.rawKey && readable(deadLetter.rawKey)],
    ['record', deadLetter.raw && readable(deadLetter.raw)],
  ])
}

type Line = [label: string, value: string | number | null | undefined]

const labelWidth = 16

function lines(all: Line[]): string {
  return all
    .filter(([, value]) => value !== null && value !== undefined && value !== '')
    .map(([label, value]) => (String(value).startsWith('\n') ? label : label.padEnd(labelWidth)) + value)
    .join('\n')
}

type Outcome = NonNullable<WholeDeadLetter['delivery']>['outcomes'][number]

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
