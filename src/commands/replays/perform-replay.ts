// What every command that starts a replay does: shows what it would send, or starts the job and follows it.
import type { Command } from 'commander'
import { isUnfinished, sentOf, type ReplayRange } from '../../core/replay/replay-job.ts'
import { ReplayRunner } from '../../console/replays/replay-runner.ts'
import type { ReplayRig } from '../../console/replays/replay-source.ts'
import { dryRunView, statusView, type Replays, type ReplayStatus } from '../../console/replays/replays.ts'
import { pause } from '../../retry-forever.ts'
import { stopSignal } from '../context.ts'
import { flagError } from '../flags.ts'
import { count, print, printJson } from '../output.ts'
import { withProgress, type ProgressBar } from '../progress-bar.ts'
import type { OpenMessages } from '../why/open-messages.ts'
import { missing, overlapNote, printDryRun, printStatus, waiting } from './describe.ts'
import { withReplays } from './session.ts'

export interface JobFlags {
  rate?: string
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
    .option('--rate <count>', 'maximum number per second (50 or 50/s)')
    .option('--dry-run', 'say what would be sent, and send nothing')
    .option('--detach', 'leave the job to the consoles, and end')
    .option('--json', 'as JSON')

/** A rate per second, as `50` or `50/s`. Throws PostriderError 'usage'. */
export function readRate(text: string | undefined): number | null {
  if (text === undefined) return null
  const rate = Number(/^(\d{1,6}(?:\.\d{1,3})?)(?:\/s)?$/.exec(text)?.[1] ?? 0)
  if (rate > 0) return rate
  throw flagError('--rate', text, 'a number per second, such as 50 or 50/s')
}

/** What is asked for, which may have to be looked up first. */
export type ReadRange = (openIndex: () => Promise<OpenMessages>, signal: AbortSignal) => Promise<ReplayRange>

export async function performReplay(command: Command, flags: JobFlags, readRange: ReadRange): Promise<void> {
  const { dryRun, detach, json = false } = flags
  const signal = stopSignal()
  await withReplays(command, async (replays, rig, messages) => {
    const range = await readRange(messages, signal)
    if (dryRun) return showDryRun(range, replays, signal, json)
    const { status } = await replays.start(range, null, signal)
    const { id } = status.job
    const note = missing(status.job, status.job.keptSince)
    if (note !== null) console.error(note)
    if (status.overlapping.length > 0) console.error(overlapNote(status.overlapping))
    if (detach) {
      if (json) printJson(statusView(status))
      else
        print(
          `replay ${id} waits for a console to run it; \`postrider replays show ${id}\` shows how far it is`,
        )
      return
    }
    console.error(`replay ${id}`)
    await follow(id, replays, rig, signal, json)
  })
}

async function showDryRun(
  range: ReplayRange,
  replays: Replays,
  signal: AbortSignal,
  json: boolean,
): Promise<void> {
  const report = await withProgress((bar) =>
    replays.dryRun(range, signal, (looked, total) =>
      bar.show('looking: {bar} {percentage}%  {value} of {total}, {eta_formatted} left', looked, total),
    ),
  )
  if (json) printJson(dryRunView(report))
  else printDryRun(report)
  if (report.refused > 0) process.exitCode = 1
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
  if (status.job.state !== 'finished' || status.totals.refused > 0) process.exitCode = 1
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
    console.error(`${count(totals.looked, 'record')} of ${total} looked at, ${sent} sent${why}`)
  }
}
