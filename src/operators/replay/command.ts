// What the commands of replays have beside their operations, and how they show it to people.
import type { Command } from 'commander'
import type { z } from 'zod'
import { namesOf, rateIn, repeatable, usageError } from '../../cli/flags.ts'
import { io } from '../../cli/io.ts'
import { performed, type Options, type CommandShape } from '../../cli/operations/operation-command.ts'
import type { AskedOperation, CommandSession } from '../../cli/operations/session.ts'
import {
  printable,
  table,
  count,
  print,
  printAside,
  printJson,
  withProgress,
  type ProgressBar,
} from '../../cli/terminal.ts'
import { kindKey } from '../../core/delivery/dead-letter-filter.ts'
import { replayKinds, type SentKind, defaultReplayKinds } from '../../core/replay/replay-job.ts'
import { pause } from '../../retry-forever.ts'
import { operationOf } from '../operations.ts'
import type { dryRunSchema, jobSchema, statusSchema } from './operations.ts'
import { ReplayRunner } from './runner.ts'

/** What retention has taken; null for nothing. */
export function missing({
  deadLetters,
  keptSince,
}: Pick<Status, 'deadLetters' | 'keptSince'>): string | null {
  if (keptSince === null) return null
  const what = deadLetters === null ? 'calls' : 'dead letters'
  return `${what} from before ${keptSince} are missing: Kafka does not keep all of them any more`
}

export const waiting: Record<NonNullable<Status['waitsFor']>, string> = {
  disabled: 'it waits: the destination is disabled',
  paused: 'it waits: the destination is paused',
}

export function statusText(status: Status): string {
  const { id, state, rate, createdAt, destinationId, deadLetters, totals, toLook, waitsFor, overlapping } =
    status
  const kinds = deadLetters === null ? replayKinds : kindsOf(status)
  return lines([
    ['replay', id],
    ['destination', destinationId],
    ['state', waitsFor === null ? state : `${state}; ${waiting[waitsFor]}`],
    ['started', createdAt],
    ...(deadLetters === null ? callLines(status) : choiceLines(deadLetters, status)),
    ['rate', rate === null ? null : `${rate} a second`],
    ['missing', missing(status)],
    ['looked at', toLook === null ? String(totals.looked) : `${totals.looked} of about ${toLook}`],
    ['sent', `${status.sent} (${kinds.map((kind) => `${kind} ${totals[kind]}`).join(', ')})`],
    ['erased', some(totals.erased, 'not sent: their users were erased')],
    ['refused', some(totals.refused, `not sent: ${refusedText(status)}`)],
    ['repeated', some(totals.repeated, 'not sent: more failures of the same deliveries')],
    ['lost', totals.lost === 0 ? null : `${totals.lost}: retention was faster`],
    ['note', overlapping.length === 0 ? null : overlapNote(overlapping)],
    ['next', state === 'paused' ? `\`postrider replays resume ${id}\`` : null],
  ])
}

type Line = [name: string, text: string | null]

const lines = (all: readonly Line[]): string =>
  all
    .filter(([, text]) => text !== null)
    .map(([name, text]) => `${name.padEnd(12)} ${printable(text!)}`)
    .join('\n')

const some = (number: number, what: string): string | null => (number === 0 ? null : `${number} ${what}`)

const listed = (names: readonly string[] | null): string | null => names && names.join(', ')

const callLines = ({ pauseId, since, until, only, types, events, user, messageId }: Status): Line[] => [
  ['calls', pauseId === null ? `from ${since} to ${until}` : `that pause ${pauseId} held`],
  ['only', listed(only)],
  ['types', listed(types)],
  ['events', listed(events)],
  ['user', user],
  ['call', messageId],
]

function choiceLines(
  { ids, reason, destination, status, kinds }: NonNullable<Status['deadLetters']>,
  { since, until }: Pick<Status, 'since' | 'until'>,
): Line[] {
  const period = (since === null ? '' : ` from ${since}`) + (until === null ? '' : ` to ${until}`)
  return [
    ['dead letters', listed(ids) ?? (period === '' ? 'of any time' : `that failed${period}`)],
    ['reasons', listed(reason)],
    ['to', listed(destination)],
    ['last status', listed(status)],
    ['kinds', kinds && kinds.map(kindKey).join(', ')],
  ]
}

/** What it may send. */
const kindsOf = ({ deadLetters, only }: Pick<Status, 'deadLetters' | 'only'>): readonly SentKind[] =>
  deadLetters === null ? replayKinds.filter((kind) => only.includes(kind)) : ['failed', 'raw']

const refusedText = ({ deadLetters }: Status): string =>
  deadLetters === null
    ? 'too large for a retry topic'
    : '`postrider dead-letters replay --dry-run` says why they cannot be replayed'

export const overlapNote = (ids: readonly string[]): string =>
  `${ids.join(', ')} began before and may send the same; receivers know them by their messageId`

export function dryRunText(report: DryRun): string {
  const { counts, erased, refused, repeated, unfinished, results } = report
  const kinds = kindsOf(report)
  const total = kinds.reduce((sum, kind) => sum + counts[kind], 0)
  const said = [
    `${total} ${total === 1 ? 'delivery' : 'deliveries'} would be sent, and nothing was`,
    missing(report),
    some(erased, 'would not: their users were erased'),
    some(refused, 'cannot be replayed'),
    some(repeated, 'more are further failures of the same deliveries'),
    some(unfinished, 'calls are not through the forwarders yet: a replay waits for them'),
  ].filter((line) => line !== null)
  const parts = [said.join('\n')]
  if (total > 0) parts.push(...countTables(report, kinds))
  if (results.length > 0)
    parts.push(
      table(
        ['ID', 'DELIVERY', 'GOES TO'],
        results.map(({ id, deliveryId, to, why }) => [id, deliveryId ?? '-', to ?? `- (${why})`]),
      ),
    )
  return parts.join('\n\n')
}

function countTables({ days, partitions }: DryRun, kinds: readonly SentKind[]): string[] {
  const sum = (each: Record<SentKind, number>) => kinds.map((kind) => each[kind])
  const filled = partitions.filter((each) => kinds.some((kind) => each[kind] > 0))
  return [
    table(
      ['DAY', ...kinds],
      days.map((day) => [day.day, ...sum(day)]),
    ),
    table(
      ['PARTITION', ...kinds],
      filled.map((each) => [String(each.partition), ...sum(each)]),
    ),
  ]
}

export interface JobFlags {
  rate?: number
  dryRun?: true
  detach?: true
  json?: true
}

const lookEveryMs = 1_000
/** Between two lines where there is no terminal to draw a bar on. */
const lineEveryMs = 5_000

export const jobText =
  'The replay is a job: it goes on when this command ends, as long as a console runs, and `postrider replays` shows, ' +
  'pauses and cancels it. While this command follows, it runs the job itself where no console does.'

export const addJobOptions = (command: Command): Command =>
  command
    .option('--rate <count>', 'maximum number per second (50 or 50/s)', rateIn)
    .option('--dry-run', 'say what would be sent, and send nothing')
    .option('--detach', 'leave the job to the consoles, and end')

export async function performReplay(
  asked: AskedOperation,
  session: CommandSession,
  options: Options,
): Promise<void> {
  const { dryRun, detach, json = false } = options as JobFlags
  if (dryRun) return showDryRun(asked, session, json)
  const status = (await performed(operationOf('startReplay'), asked, session)) as Status
  const { id, overlapping } = status
  const note = missing(status)
  if (note !== null) printAside(note)
  if (overlapping.length > 0) printAside(overlapNote(overlapping))
  if (detach) {
    if (json) printJson(status)
    else
      print(
        `replay ${id} waits for a console to run it; \`postrider replays show ${id}\` shows how far it is`,
      )
    return
  }
  printAside(`replay ${id}`)
  await follow(id, session, json)
}

async function showDryRun(asked: AskedOperation, session: CommandSession, json: boolean): Promise<void> {
  const report = (await performed(operationOf('dryRunReplay'), asked, session)) as DryRun
  if (json) printJson(report)
  else print(dryRunText(report))
  if (report.refused > 0) io().exitCode = 1
}

const isUnfinished = ({ state }: Status): boolean => state === 'running' || state === 'paused'

/** Shows how far it is, and runs it where no console does. */
async function follow(id: string, session: CommandSession, json: boolean): Promise<void> {
  const { signal, replays } = session
  const leaving = new AbortController()
  const running = new ReplayRunner(replays).run(AbortSignal.any([signal, leaving.signal]), id)
  let status: Status
  try {
    status = await withProgress(async (bar) => {
      const shown = shownOn(bar)
      for (;;) {
        const now = (await performed(operationOf('showReplay'), { params: { id } }, session)) as Status
        shown(now)
        if (!isUnfinished(now) || now.state === 'paused' || signal.aborted) return now
        await pause(lookEveryMs, signal)
      }
    })
  } finally {
    leaving.abort()
    await running
  }
  const { state, totals } = status
  if (json) printJson(status)
  else if (!isUnfinished(status)) print(statusText(status))
  else if (state === 'paused')
    print(`replay ${id} was paused; \`postrider replays resume ${id}\` lets it go on`)
  else
    print(
      `replay ${id} goes on as long as a console runs; \`postrider replays show ${id}\` shows how far it is`,
    )
  if (state !== 'finished' || totals.refused > 0) io().exitCode = 1
}

function shownOn(bar: ProgressBar): (status: Status) => void {
  let reportedAt = performance.now()
  return ({ sent, totals, toLook, waitsFor }) => {
    const total = Math.max(toLook ?? 0, totals.looked)
    bar.show('{bar} {percentage}%  {value} of {total} looked at, {sent} sent', totals.looked, total, { sent })
    if (bar.isShown || performance.now() - reportedAt < lineEveryMs) return
    reportedAt = performance.now()
    const why = waitsFor === null ? '' : `; ${waiting[waitsFor]}`
    printAside(`${count(totals.looked, 'record')} of ${total} looked at, ${sent} sent${why}`)
  }
}

/** `postrider replay`: calls of the past. */
export const replayShape: CommandShape = {
  summary: 'Send calls of the past to a destination: what it has not had, or all',
  description:
    'Sends calls of the past to a destination again: what it has not had, unless told otherwise, by the settings of ' +
    `today. ${jobText}`,
  addFlags(command) {
    command.addOption(
      repeatable(
        '--only <kind>',
        `${replayKinds.join(', ')}, or all; repeatable, or separated by commas; else ${defaultReplayKinds.join(',')}, or with --message all`,
      ),
    )
    addJobOptions(command)
  },
  read(options) {
    const { destination, since, until, message } = options as Partial<Record<string, string>>
    if (destination === undefined) throw usageError('name the destination with --destination')
    if (since === undefined && message === undefined)
      throw usageError('give --since, or --message with the id of one call')
    if (since === undefined && until !== undefined) throw usageError('--until means nothing without --since')
    const { only: given } = options as { only?: string[] }
    const isAll = given?.length === 1 && given[0]!.trim() === 'all'
    const only = isAll ? [...replayKinds] : namesOf('--only', given, replayKinds)
    const body = { ...(only && { only }), rate: (options as JobFlags).rate }
    return () => ({ body })
  },
  run: performReplay,
}

type Job = z.output<typeof jobSchema>
export type Status = z.output<typeof statusSchema>
export type DryRun = z.output<typeof dryRunSchema>

const done = { pause: 'paused', resume: 'running', cancel: 'cancelled' } as const

export const replayShapes: Readonly<Record<string, CommandShape>> = {
  listReplays: {
    none: 'no replays; `postrider replay --help` shows how to make one',
    row: {
      headings: ['ID', 'DESTINATION', 'STATE', 'ONLY', 'SINCE', 'UNTIL'],
      of: ({ id, destinationId, deadLetters, state, only, since, until }: Job) => [
        id,
        destinationId ?? '-',
        state,
        deadLetters === null ? only.join(',') : 'dead letters',
        since ?? '-',
        until ?? '-',
      ],
    },
  },
  showReplay: { text: statusText },
  ...Object.fromEntries(
    Object.entries(done).map(([turn, state]) => [
      `${turn}Replay`,
      { text: ({ id }: Status) => `replay ${id} is ${state}` },
    ]),
  ),
}
