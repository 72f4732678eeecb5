// How dead letters are shown to people: a row, or a page.
import { textOf } from '../../console/dead-letters/describe.ts'
import { statusOf } from '../../core/delivery/dead-letter-filter.ts'
import { isoOf, isoOrNull } from '../../core/iso-time.ts'
import type { StoredDeadLetter } from '../../console/dead-letters/dead-letter-store.ts'
import type { DeadLetterGroup } from '../../console/dead-letters/groups.ts'
import type { EndpointOutcome } from '../../core/delivery/delivery.ts'
import { printable } from '../output.ts'

export const headings = ['id', 'failed', 'reason', 'destination', 'attempts', 'last attempt']

export function rowOf({ id, deadLetter, failedAt }: StoredDeadLetter): (string | number)[] {
  const delivery = deadLetter?.delivery
  return [
    id,
    secondOf(failedAt),
    deadLetter?.reason ?? 'unreadable',
    delivery?.destinationId ?? '-',
    delivery?.attempts ?? '-',
    statusOf(deadLetter) ?? '-',
  ]
}

export const groupHeadings = ['count', 'reason', 'last attempt', 'destination', 'first', 'last']

export const groupRowOf = ({
  count,
  reason,
  status,
  destinationId,
  firstAt,
  lastAt,
}: DeadLetterGroup): (string | number)[] => [
  count,
  reason ?? 'unreadable',
  String(status ?? '-'),
  destinationId ?? '-',
  secondOf(firstAt),
  secondOf(lastAt),
]

const secondOf = (at: number): string => isoOf(at).replace(/\.\d{3}Z$/, 'Z')

/** All of it, for people. */
export function pageOf({ id, deadLetter, problem, record, failedAt }: StoredDeadLetter): string {
  if (!deadLetter)
    return lines([
      ['dead letter', id],
      ['written', isoOf(failedAt)],
      ['unreadable', problem],
      ['value', record.value && readable(record.value)],
    ])
  const { delivery, origin } = deadLetter
  const { lastResponse } = delivery ?? {}
  return lines([
    ['dead letter', id],
    ['failed', isoOf(failedAt)],
    ['reason', deadLetter.reason],
    ['detail', deadLetter.detail && block(deadLetter.detail)],
    ['delivery', delivery && printable(delivery.id)],
    ['source', delivery && printable(delivery.sourceId)],
    ['destination', delivery && printable(delivery.destinationId)],
    ['type', delivery?.type],
    ['attempts', delivery?.attempts],
    ['times scheduled', delivery?.timesScheduled],
    ['first attempt', isoOrNull(delivery?.firstAttemptAt)],
    ['first scheduled', isoOrNull(delivery?.firstScheduledAt)],
    ['URLs left', delivery && printable(delivery.endpointIds.join(' '))],
    ['origin', `${printable(origin.topic)} partition ${origin.partition} offset ${origin.offset}`],
    ['owner', printable(deadLetter.owner)],
    ...(delivery?.outcomes ?? []).map((outcome): Line => [
      `last at ${printable(outcome.endpointId)}`,
      outcomeOf(outcome),
    ]),
    [
      'last response',
      lastResponse &&
        `${printable(lastResponse.endpointId)} ${lastResponse.status} after ${Math.round(lastResponse.durationMs)} ms, ` +
          `${isoOf(lastResponse.at)}${readable(lastResponse.body)}`,
    ],
    [
      'left out',
      deadLetter.omittedBytes === null
        ? null
        : `${deadLetter.omittedBytes} bytes, SHA-256 ${deadLetter.omittedSha256}`,
    ],
    ['key', record.key && readable(record.key)],
    ['body', delivery && deadLetter.omittedBytes === null ? readable(delivery.body) : null],
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

function outcomeOf({ kind, status, durationMs, at, detail }: EndpointOutcome): string {
  const what = status === null ? kind : `${kind} ${status}`
  const why = detail === null ? '' : `: ${printable(detail)}`
  return `${what} after ${Math.round(durationMs)} ms, ${isoOf(at)}${why}`
}

/** What fits on a page of a terminal, roughly; --json has all. */
const maxHexBytes = 2_048

/** An indented block below its label: text as it is, anything else as hex. */
function readable(bytes: Uint8Array): string {
  const text = textOf(bytes)
  if (text !== null && !text.includes('\0')) return block(text)
  const hex = Buffer.from(bytes.subarray(0, maxHexBytes)).toString('hex')
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
