import { Command } from 'commander'
import { runAction } from '../../cli/context.ts'
import type { JsonFlag } from '../../cli/flags.ts'
import { noteHeld } from '../../cli/operations/operation-command.ts'
import { inSession, type CommandSession } from '../../cli/operations/session.ts'
import { print, printJson, count, printable, withProgress } from '../../cli/terminal.ts'
import { isoOf } from '../../core/duration.ts'
import type { CopyLife, Step } from '../../core/ledger/call-life.ts'
import type { NotPlannedReason } from '../../core/ledger/delivery-event.ts'
import type { DeliveryLife } from '../../core/ledger/delivery-life.ts'
import { waitSentence } from '../../core/statistics/waiting-reason.ts'
import { strictTier } from '../../core/topics.ts'
import { jsonOf, deadLetterIdOf, replayOfStep } from './describe.ts'
import { noWaits, waitsOf, type Waits } from './waits.ts'
import { lifeOfMessage, type MessageCopy, type MessageLife } from './why.ts'

export function whyCommand(): Command {
  return new Command('why')
    .argument('<messageId>', 'of the call')
    .description(
      'Shows the life of one call in order: how it was received, to which destinations it was planned and why not to ' +
        'others, each attempt, each retry with its tier and due time, and what became of each delivery. Of ' +
        'deliveries that succeeded at once the ledger holds no more than tallies, unless LEDGER=all is set: then ' +
        'the time is that of the tally. An index of the topics is kept under STORE_PATH; the first use builds it. ' +
        'Exits with 1 if nothing is known of the message.',
    )
    .option('--json', 'as JSON, in the form of the admin API')
    .action(runAction(run))
}

async function run(messageId: string, { json }: JsonFlag, command: Command): Promise<void> {
  const work = async (session: CommandSession) => {
    const { services, signal } = session
    noteHeld(session)
    const messages = await services.messages()
    const life = await withProgress((bar) =>
      lifeOfMessage(messageId, messages, {
        signal,
        progress(done, total) {
          if (total >= minRecords)
            bar.show('indexing {bar} {value}/{total} records, {eta_formatted} left', done, total)
        },
      }),
    )
    const waits = await waitsOf(life, services)
    const now = services.now()
    if (json) printJson(jsonOf(life, { hidesContents: false, waits, now }))
    else print(pageOf(life, waits, now))
  }
  await inSession(command, work, 'look')
}

/** Short reading is not worth a bar. */
const minRecords = 20_000

/** For people: each copy of the call, and what became of it, in order. */
export function pageOf(
  { messageId, copies, omitted, indexedSince }: MessageLife,
  waits: Waits = noWaits,
  now = 0,
): string {
  const found = copies.length + omitted
  const head = [
    `message ${printable(messageId)}${found > 1 ? `: it lies in Kafka ${found} times` : ''}`,
    ...(omitted > 0 ? [`the oldest ${omitted} are not shown`] : []),
    ...(indexedSince === null
      ? []
      : [`what is older than ${isoOf(indexedSince)} is not in the index (MESSAGE_INDEX_MB)`]),
  ]
  return [
    head.join('\n'),
    ...copies.map((copy, index) => copyPage(copy, copies.length > 1 ? index + 1 : null, waits, now)),
  ].join('\n\n')
}

function copyPage(copy: MessageCopy, number: number | null, waits: Waits, now: number): string {
  const { place, appendedAt, erased, call, life } = copy
  const lies = `${place.topic} partition ${place.partition} offset ${place.offset}`
  const lines: string[] = number === null ? [] : [`copy ${number}`]
  if (erased) {
    lines.push(row(appendedAt, 'received', lies))
    lines.push(row(null, 'erased', 'a deletion request covers it: nothing more of it is shown'))
    return lines.join('\n')
  }
  if (call) {
    const { type, event, name, sourceId, userId, anonymousId } = call
    const what = event ?? name
    const who = userId === null ? `anonymous ${anonymousId ?? '-'}` : `user ${userId}`
    lines.push(
      printable(`${type}${what === null ? '' : ` ${JSON.stringify(what)}`} of source ${sourceId}, ${who}`),
    )
    const from = copy.writer === 'collector' ? 'by a collector' : 'from a producer'
    lines.push(row(call.receivedAt, 'received', `${from}; ${lies}, appended ${isoOf(appendedAt!)}`))
  } else {
    lines.push(row(null, 'received', `${lies}; its record is there no more`))
  }
  lines.push(...planRows(copy), ...(life?.steps ?? []).map(stepRow))
  for (const delivery of life?.deliveries ?? []) {
    lines.push(`=> ${nameOf(delivery)}: ${endOf(delivery)}`)
    const reason = waits.get(delivery)
    if (reason) lines.push(printable(`   ${waitSentence(reason, { now, timeText: isoOf })}`))
  }
  if (life?.record) lines.push(`=> ${endOfRecord(life.record)}`)
  return lines.join('\n')
}

const timeWidth = 24
const whatWidth = 13

/** A line with a time, or with an unknown one. */
const row = (at: number | null, what: string, text: string): string =>
  printable(
    `  ${(at === null ? '' : isoOf(at)).padEnd(timeWidth)}  ${what.padEnd(whatWidth)} ${text}`.trimEnd(),
  )

const reasons: Record<NotPlannedReason, string> = {
  source_disabled: 'its source is disabled',
  destination_disabled: 'it is disabled',
  integrations: 'the call’s integrations keep it away',
  suppressed: 'the user is suppressed',
  not_chosen: 'it did not choose such calls (--types, --events)',
  no_consent: 'the call denies a consent that it needs (--consent)',
  filtered: 'its condition does not hold (--where)',
}

function planRows({ call, life }: MessageCopy): string[] {
  const plan = life?.plan
  if (!plan) return call && life?.record === null ? [row(null, 'planned', 'for whom is not known')] : []
  const unsure = plan.isCertain ? '' : ' (the settings changed meanwhile: perhaps)'
  if (plan.lines.length === 0)
    return [row(null, 'planned', `for nobody: the source has no destination${unsure}`)]
  return plan.lines.map(({ destinationId, urlId, reason }) => {
    const who = nameOf({ destinationId, urlId })
    return row(
      null,
      reason === null ? 'planned' : 'not planned',
      (reason === null ? `for ${who}` : `for ${who}: ${reasons[reason] ?? reason}`) + unsure,
    )
  })
}

const nameOf = ({ destinationId, urlId }: Pick<DeliveryLife, 'destinationId' | 'urlId'>): string =>
  urlId === null ? destinationId : `${destinationId} (URL ${urlId})`

function stepRow(step: Step): string {
  const who =
    step.destinationId === null ? '' : nameOf({ destinationId: step.destinationId, urlId: step.ofUrlId })
  const note = step.repeat ? ' [by a process that ended before this counted: it was done again]' : ''
  const [what, text] = wordsOf(step)
  return row(step.at, what, [who, text].filter((part) => part !== '').join(': ') + note)
}

function wordsOf(step: Step): [what: string, text: string] {
  if (step.kind === 'attempt') {
    const { attempt, urlId, outcome, status, durationMs, detail } = step
    const took = durationMs === null ? '' : ` after ${Math.round(durationMs)} ms`
    const came = status === null ? outcome : `${outcome} ${status}`
    if (outcome === 'deferred' || outcome === 'no_token')
      return ['put off', `at URL ${urlId}: ${detail ?? 'no attempt now'}`]
    return [
      `attempt ${attempt ?? '?'}`,
      `at URL ${urlId}: ${came}${took}${detail === null ? '' : `, ${detail}`}`,
    ]
  }
  if (step.kind === 'retry') {
    const replay = replayOfStep(step)
    return [
      'replayed',
      replay === null ? `through tier ${step.tier}, due ${isoOf(step.dueAt)}` : `by ${replay}`,
    ]
  }
  const { disposition, reason, detail, tier, dueAt, notBefore, deadLetter } = step
  switch (disposition) {
    case 'retried':
    case 'deferred': {
      const asked = notBefore === null ? '' : `, not before ${isoOf(notBefore)}`
      if (tier === strictTier.name) return ['parked', `in the order of its user’s calls${asked}`]
      const due = dueAt === null ? '' : `, due ${isoOf(dueAt)}`
      const released = reason === null ? '' : `, no longer waited for by later calls (${reason})`
      return [disposition, `to tier ${tier ?? '?'}${due}${asked}${released}`]
    }
    case 'dead_lettered': {
      const id = deadLetterIdOf(deadLetter)
      const why = detail === null ? '' : `: ${detail}`
      return ['dead letter', `${reason ?? 'of an unknown reason'}${id === null ? '' : ` (${id})`}${why}`]
    }
    default:
      return [disposition, [reason, detail].filter((part) => part !== null).join(': ')]
  }
}

type End = Omit<DeliveryLife, 'destinationId' | 'urlId'>

function endOf({ state, at, byTally, attempts, reason, pausedAt, tier, dueAt, deadLetter }: End): string {
  switch (state) {
    case 'open':
      return 'not finished: it waits in Kafka, or is in flight'
    case 'waiting':
      if (tier === strictTier.name)
        return `parked in the order of its user’s calls, after ${times(attempts)} before that`
      return `waits in tier ${tier}, due ${isoOf(dueAt!)}, after ${times(attempts)}`
    case 'delivered':
      return byTally
        ? `delivered at the first attempt, by ${isoOf(at!)} (a tally of the ledger says so)`
        : `delivered ${isoOf(at!)}, after ${times(attempts)}`
    case 'dead_letter':
      return `dead letter ${isoOf(at!)}: ${reason ?? 'of an unknown reason'}${lookAt(deadLetter)}`
    case 'skipped':
      return byTally
        ? `skipped, by ${isoOf(at!)} (a tally of the ledger says so)`
        : `skipped ${isoOf(at!)}${reason === null ? '' : `: ${reason}`}`
    case 'held': {
      const since = pausedAt === null ? '' : ` of ${isoOf(pausedAt)}`
      return `held by the pause${since} (id ${reason}), by ${isoOf(at!)}, after ${times(attempts)}`
    }
    case 'erased':
      return `erased ${isoOf(at!)}`
    case 'unknown':
      return 'finished; what is left of the ledger does not say how'
  }
}

function endOfRecord(record: NonNullable<CopyLife['record']>): string {
  if (record.state === 'skipped' && record.byTally)
    return `skipped, by ${isoOf(record.at!)}: no destination takes it (see above)`
  return endOf({ ...record, attempts: null, tier: null, dueAt: null })
}

const times = (attempts: number | null): string =>
  attempts === null ? 'attempts that nobody counted' : count(attempts, 'attempt')

const lookAt = (deadLetter: DeliveryLife['deadLetter']): string =>
  deadLetter === null ? '' : `; \`postrider dead-letters show ${deadLetterIdOf(deadLetter)}\` has all of it`
