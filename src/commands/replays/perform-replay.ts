// What every command that starts a replay does: shows what it would send, or starts the job and follows it.
import type { Command } from 'commander'
import { operationOf } from '../../console/api/operations.ts'
import { ReplayRunner } from '../../console/replays/replay-runner.ts'
import { pause } from '../../retry-forever.ts'
import { flagError } from '../flags.ts'
import { performed, type Options } from '../operations/operation-command.ts'
import type { Asked } from '../operations/perform.ts'
import type { CommandSession } from '../operations/session.ts'
import { count, print, printJson } from '../output.ts'
import { withProgress, type ProgressBar } from '../progress-bar.ts'
import { dryRunText, missing, overlapNote, statusText, waiting } from './describe.ts'
import type { DryRun, Status } from './shapes.ts'

interface JobFlags {
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

/** A rate per second, as `50` or `50/s`; undefined without one. Throws PostriderError 'usage'. */
export function rateIn({ rate: text }: JobFlags): number | undefined {
  if (text === undefined) return undefined
  const rate = Number(/^(\d{1,6}(?:\.\d{1,3})?)(?:\/s)?$/.exec(text)?.[1] ?? 0)
  if (rate > 0) return rate
  throw flagError('--rate', text, 'a number per second, such as 50 or 50/s')
}

export async function performReplay(asked: Asked, session: CommandSession, options: Options): Promise<void> {
  const { dryRun, detach, json = false } = options as JobFlags
  if (dryRun) return showDryRun(asked, session, json)
  const status = (await performed(operationOf('startReplay'), asked, session)) as Status
  const { id, overlapping } = status
  const note = missing(status)
  if (note !== null) console.error(note)
  if (overlapping.length > 0) console.error(overlapNote(overlapping))
  if (detach) {
    if (json) printJson(status)
    else
      print(
        `replay ${id} waits for a console to run it; \`postrider replays show ${id}\` shows how far it is`,
      )
    return
  }
  console.error(`replay ${id}`)
  await follow(id, session, json)
}

async function showDryRun(asked: Asked, session: CommandSession, json: boolean): Promise<void> {
  const report = (await performed(operationOf('dryRunReplay'), asked, session)) as DryRun
  if (json) printJson(report)
  else print(dryRunText(report))
  if (report.refused > 0) process.exitCode = 1
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
  if (state !== 'finished' || totals.refused > 0) process.exitCode = 1
}

function shownOn(bar: ProgressBar): (status: Status) => void {
  let reportedAt = performance.now()
  return ({ sent, totals, toLook, waitsFor }) => {
    const total = Math.max(toLook ?? 0, totals.looked)
    bar.show('{bar} {percentage}%  {value} of {total} looked at, {sent} sent', totals.looked, total, { sent })
    if (bar.isShown || performance.now() - reportedAt < lineEveryMs) return
    reportedAt = performance.now()
    const why = waitsFor === null ? '' : `; ${waiting[waitsFor]}`
    console.error(`${count(totals.looked, 'record')} of ${total} looked at, ${sent} sent${why}`)
  }
}
