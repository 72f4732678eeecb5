import { isoOf, isoOrNull } from '../../core/duration.ts'
import {
  addTotals,
  isUnfinished,
  noTotals,
  overlaps,
  sentOf,
  type ReplayJob,
  type ReplayRange,
  type ReplayTotals,
} from '../../core/replay/replay-job.ts'
import type { RequestKey } from '../../core/settings/commands.ts'
import { PostriderError } from '../../errors.ts'
import { checkedTerms } from './terms.ts'
import { spansBetween, waitsFor } from './chosen-calls.ts'
import { deadLetterSpans } from './chosen-dead-letters.ts'
import { dryRun, type DryRunReport } from './dry-run.ts'
import type { ReplayRig } from './rig.ts'

/** A replay as it is now. */
export interface ReplayStatus {
  job: ReplayJob
  totals: ReplayTotals
  /** About how many records are to be looked at; null where that is not known. */
  toLook: number | null
  /** Why it sends nothing at the moment. */
  waitsFor: 'disabled' | 'paused' | null
  /** Unfinished replays that were there before and may send the same calls. */
  overlapping: string[]
}

/** Replays, for commands and API alike. */
export interface Replays {
  /** Throws SettingsRefused with every fault, and `not_found`. `repeated`: the request had been made before. */
  start(
    range: ReplayRange,
    request: RequestKey | null,
    signal: AbortSignal,
  ): Promise<{ status: ReplayStatus; repeated: boolean }>
  dryRun(
    range: ReplayRange,
    signal: AbortSignal,
    progress: (looked: number, total: number) => void,
  ): Promise<DryRunReport>
  /** The oldest first. */
  list(): ReplayJob[]
  /** Throws `not_found`. */
  show(id: string): Promise<ReplayStatus>
  /** Throws SettingsRefused: `not_found`, or `conflict` where it has ended. */
  turn(id: string, turn: 'pause' | 'resume' | 'cancel'): Promise<ReplayStatus>
}

export function replaysOf(rig: ReplayRig): Replays {
  const { settings, source, topics, now } = rig
  const jobOf = (id: string): ReplayJob => {
    const job = settings.state.replays.get(id)
    if (job) return job
    throw new PostriderError(
      'not_found',
      `replay ${JSON.stringify(id)} does not exist; \`postrider replays list\` shows those of the last 30 days`,
    )
  }
  const totalsOf = async (job: ReplayJob): Promise<ReplayTotals> => {
    if (job.totals) return job.totals
    const sum = noTotals()
    for (const { totals } of await rig.progress(job.id)) addTotals(sum, totals)
    return sum
  }
  const statusOf = async (job: ReplayJob): Promise<ReplayStatus> => {
    const { replays } = settings.state
    const others = [...replays.values()].filter(
      (other) =>
        other.id !== job.id &&
        isUnfinished(other) &&
        other.createdAt <= job.createdAt &&
        overlaps(job, other),
    )
    return {
      job,
      totals: await totalsOf(job),
      toLook: isUnfinished(job) && job.pauseId === null ? await toLook(job) : null,
      waitsFor: job.state === 'running' ? waitsFor(job, settings.state) : null,
      overlapping: isUnfinished(job) ? others.map(({ id }) => id) : [],
    }
  }
  const toLook = async (job: ReplayJob): Promise<number> => {
    const spans =
      job.deadLetters === null
        ? await spansBetween(source, topics.calls, job.since, job.until)
        : await deadLetterSpans(job, source, topics.deadLetters)
    return spans.reduce((sum, { low, high }) => sum + Math.max(0, high - low), 0)
  }
  return {
    async start(range, request, signal) {
      const { terms, keptSince, at } = await checkedTerms(range, rig, signal)
      const id = rig.newId(at)
      const { event, repeated } = await settings.perform(
        { type: 'start_replay', id, terms, pauseId: null, keptSince, at },
        { request },
      )
      const made = (event as { replay: ReplayJob }).replay
      return { status: await statusOf(settings.state.replays.get(made.id) ?? made), repeated }
    },
    dryRun: (range, signal, progress) => dryRun(range, rig, signal, progress),
    list: () => [...settings.state.replays.values()],
    show: (id) => statusOf(jobOf(id)),
    async turn(id, turn) {
      if (turn === 'cancel') {
        const totals = await totalsOf(jobOf(id))
        await settings.perform({ type: 'cancel_replay', id, at: now(), totals })
      } else await settings.perform({ type: `${turn}_replay`, id, at: now() })
      return statusOf(jobOf(id))
    },
  }
}

const ofDeadLetters = {
  destinationId: null,
  only: ['failed'],
  types: null,
  events: null,
  user: null,
  messageId: null,
}

function rangeView(range: ReplayRange) {
  const { deadLetters, rate } = range
  const { destinationId, only, types, events, user, messageId } =
    range.deadLetters === null ? range : ofDeadLetters
  const [since, until] = [isoOrNull(range.since), isoOrNull(range.until)]
  return { destinationId, deadLetters, only, since, until, types, events, user, messageId, rate }
}

// As JSON, for the admin API and `--json` alike.
export const jobView = (job: ReplayJob) => ({
  id: job.id,
  ...rangeView(job),
  pauseId: job.pauseId,
  keptSince: isoOrNull(job.keptSince),
  state: job.state,
  createdAt: isoOf(job.createdAt),
  changedAt: isoOf(job.changedAt),
})

export const statusView = ({ job, totals, toLook, waitsFor: waits, overlapping }: ReplayStatus) => ({
  ...jobView(job),
  sent: sentOf(totals),
  totals,
  toLook,
  waitsFor: waits,
  overlapping,
})

export const dryRunView = ({ range, keptSince, ...found }: DryRunReport) => ({
  ...rangeView(range),
  keptSince: isoOrNull(keptSince),
  ...found,
})
