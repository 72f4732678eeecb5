import { Command } from 'commander'
import { callTypes } from '../../core/call/analytics-call.ts'
import {
  defaultReplayKinds,
  isUnfinished,
  kindsUnlessChosen,
  replayKinds,
  sentOf,
  type ReplayKind,
  type ReplayRange,
} from '../../core/replay/replay-job.ts'
import { timesOfCall } from '../../console/replays/named-call.ts'
import { ReplayRunner } from '../../console/replays/replay-runner.ts'
import type { ReplayRig } from '../../console/replays/replay-source.ts'
import { dryRunView, statusView, type Replays, type ReplayStatus } from '../../console/replays/replays.ts'
import { pause } from '../../retry-forever.ts'
import { runAction, stopSignal } from '../context.ts'
import { readRate } from '../dead-letters/report.ts'
import { namesOf, readPeriod, repeatable, usageError } from '../flags.ts'
import { count, print, printJson } from '../output.ts'
import { withProgress, type ProgressBar } from '../progress-bar.ts'
import { missing, overlapNote, printDryRun, printStatus, waiting } from './describe.ts'
import type { OpenMessages } from '../why/open-messages.ts'
import { withOpen } from '../with-open.ts'
import { withReplays } from './session.ts'

interface ReplayFlags {
  destination: string
  since?: string
  until?: string
  only?: string[]
  types?: string[]
  events?: string[]
  user?: string
  message?: string
  rate?: string
  dryRun?: true
  detach?: true
  json?: true
}

const lookEveryMs = 1_000
/** Between two lines where there is no terminal to draw a bar on. */
const lineEveryMs = 5_000

export function replayCommand(): Command {
  return new Command('replay')
    .description(
      'Sends calls of the past to a destination again: what it has not had, unless told otherwise, by the settings of ' +
        'today. The replay is a job: it goes on when this command ends, as long as a console runs, and `postrider replays` ' +
        'shows, pauses and cancels it. While this command follows, it runs the job itself where no console does.',
    )
    .requiredOption('--destination <id>', 'where to')
    .option(
      '--since <time>',
      'what came in since then: an ISO time (UTC), or a duration ago (2h); needed unless --message is given',
    )
    .option(
      '--until <time>',
      'what came in before then: an ISO time (UTC), or a duration ago (30m); else now',
    )
    .addOption(
      repeatable(
        '--only <kind>',
        `${replayKinds.join(', ')}, or all; repeatable, or separated by commas; else ${defaultReplayKinds.join(',')}, or with --message all`,
      ),
    )
    .addOption(
      repeatable(
        '--types <type>',
        `only calls of these types: ${callTypes.join(', ')}; repeatable, or separated by commas`,
      ),
    )
    .addOption(
      repeatable('--events <name>', 'only track calls of this event, written exactly so; repeatable'),
    )
    .option('--user <id>', 'only calls of this user')
    .option(
      '--message <id>',
      'only the call with this messageId, whatever it was: of several copies the newest',
    )
    .option('--rate <count>', 'maximum number per second (50 or 50/s)')
    .option('--dry-run', 'say what would be sent, and send nothing')
    .option('--detach', 'leave the job to the consoles, and end')
    .option('--json', 'as JSON')
    .action(runAction(replay))
}

async function replay(flags: ReplayFlags, command: Command): Promise<void> {
  const readRange = rangeReader(flags, Date.now())
  const signal = stopSignal()
  await withReplays(command, async (replays, rig, messages) => {
    const terms = await readRange(messages, signal)
    if (flags.dryRun) {
      const report = await withProgress((bar) =>
        replays.dryRun(terms, signal, (looked, total) =>
          bar.show('looking: {bar} {percentage}%  {value} of {total}, {eta_formatted} left', looked, total),
        ),
      )
      if (flags.json) printJson(dryRunView(report))
      else printDryRun(report)
      return
    }
    const { status } = await replays.start(terms, null, signal)
    const { id } = status.job
    const note = missing(status.job)
    if (note !== null) console.error(note)
    if (status.overlapping.length > 0) console.error(overlapNote(status.overlapping))
    if (flags.detach) {
      if (flags.json) printJson(statusView(status))
      else
        print(
          `replay ${id} waits for a console to run it; \`postrider replays show ${id}\` shows how far it is`,
        )
      return
    }
    console.error(`replay ${id}`)
    await follow(id, replays, rig, signal, flags.json ?? false)
  })
}

/** Shows how far it is, and runs it where no console does. */
async function follow(
  id: string,
  replays: Replays,
  rig: ReplayRig,
  signal: AbortSignal,
  json: boolean,
): Promise<void> {
  const leaving = new AbortController()
  const running = new ReplayRunner(rig).run(AbortSignal.any([signal, leaving.signal]), id)
  let status: ReplayStatus
  try {
    status = await withProgress(async (bar) => {
      const shown = shownOn(bar)
      for (;;) {
        const now = await replays.show(id)
        shown(now)
        if (!isUnfinished(now.job) || now.job.state === 'paused' || signal.aborted) return now
        await pause(lookEveryMs, signal)
      }
    })
  } finally {
    leaving.abort()
    await running
  }
  if (json) printJson(statusView(status))
  else if (isUnfinished(status.job)) {
    print(
      status.job.state === 'paused'
        ? `replay ${id} was paused; \`postrider replays resume ${id}\` lets it go on`
        : `replay ${id} goes on as long as a console runs; \`postrider replays show ${id}\` shows how far it is`,
    )
  } else printStatus(status)
  if (status.job.state !== 'finished') process.exitCode = 1
}

function shownOn(bar: ProgressBar): (status: ReplayStatus) => void {
  let reportedAt = performance.now()
  return ({ totals, toLook, waitsFor }) => {
    const sent = sentOf(totals)
    const total = Math.max(toLook ?? 0, totals.looked)
    bar.show('{bar} {percentage}%  {value} of {total} looked at, {sent} sent', totals.looked, total, { sent })
    if (bar.isShown || performance.now() - reportedAt < lineEveryMs) return
    reportedAt = performance.now()
    const why = waitsFor === null ? '' : `; ${waiting[waitsFor]}`
    console.error(`${count(totals.looked, 'call')} of ${total} looked at, ${sent} sent${why}`)
  }
}

type OpenIndex = () => Promise<OpenMessages>

/** Throws `usage` that names the flag. When a call that is named came in has to be looked up. */
function rangeReader(
  flags: ReplayFlags,
  now: number,
): (openIndex: OpenIndex, signal: AbortSignal) => Promise<ReplayRange> {
  const { since, until } = readPeriod(flags, now)
  const messageId = flags.message ?? null
  const rest = {
    destinationId: flags.destination,
    only: readKinds(flags.only, messageId),
    types: namesOf('--types', flags.types, callTypes),
    events: flags.events ?? null,
    user: flags.user ?? null,
    messageId,
    rate: readRate(flags.rate),
  }
  if (since !== null) return async () => ({ ...rest, since, until: until ?? now })
  if (messageId === null) throw usageError('give --since, or --message to send one call')
  if (until !== null) throw usageError('--until means nothing without --since')
  return async (openIndex, signal) =>
    withOpen(await openIndex(), async (messages) => ({
      ...rest,
      ...(await timesOfCall(messageId, messages, { signal })),
    }))
}

function readKinds(given: readonly string[] | undefined, messageId: string | null): ReplayKind[] {
  if (given?.length === 1 && given[0]!.trim() === 'all') return [...replayKinds]
  return namesOf('--only', given, replayKinds) ?? kindsUnlessChosen(messageId)
}
