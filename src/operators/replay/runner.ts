import { replaysKeptMs } from '../../core/replay/replay-events.ts'
import { destinationsOf, replayKinds, type ReplayJob } from '../../core/replay/replay-job.ts'
import { heldReplayId } from '../../core/replay/replay-rules.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import { pause } from '../../retry-forever.ts'
import { CallRun } from './call-run.ts'
import { waitsFor } from './chosen-calls.ts'
import { DeadLetterRun } from './chosen-dead-letters.ts'
import { ReplayOutbox } from './outbox.ts'
import type { ReplayRig, ReplayLease } from './rig.ts'
import { FactsReader } from './ledger.ts'

/** Replays that one process runs at once: each holds sets of offsets. They read the ledger together. */
export const maxRunning = 8
/** Beside these, those of pauses: what a pause held is a few runs of offsets, and there may be many short pauses. */
export const maxHeldRunning = 64
const lookEveryMs = 1_000
/** How soon a replay that another process runs, or that failed, is tried again. Each try asks its holder for a sign of life. */
const tryAgainMs = 10_000
/** As long before a pause as calls may have waited when it began. */
const beforePauseMs = 60_000

/** Whose turn it takes: its destination's. Dead letters may be of any. */
const ofJob = (job: ReplayJob): string => (job.deadLetters === null ? job.destinationId : '')

const isOfPause = ({ pauseId }: ReplayJob): boolean => pauseId !== null

/** Runs whatever replays are to run, and starts those of pauses that have ended. Until the signal aborts. */
export class ReplayRunner {
  readonly #rig: ReplayRig
  readonly #running = new Map<string, { job: ReplayJob; work: Promise<void> }>()
  readonly #notBefore = new Map<string, number>()
  /** What replays had read that left their places: reading it again takes minutes, as long as a pause may be over. */
  readonly #read = new Map<string, FactsReader>()

  constructor(rig: ReplayRig) {
    this.#rig = rig
  }

  /** @param only runs this one, and starts none; ends once it does not run any more */
  async run(signal: AbortSignal, only: string | null = null): Promise<void> {
    while (!signal.aborted) {
      if (only === null) await this.#startHeld(signal)
      else if (this.#rig.settings.state.replays.get(only)?.state !== 'running') break
      for (const job of this.#due(only)) this.#begin(job, signal)
      await pause(lookEveryMs, signal)
    }
    await Promise.all([...this.#running.values()].map(({ work }) => work))
  }

  #due(only: string | null): ReplayJob[] {
    const now = performance.now()
    const { state } = this.#rig.settings
    const due = [...state.replays.values()]
      .filter((job) => job.state === 'running' && !this.#running.has(job.id) && (only ?? job.id) === job.id)
      .filter((job) => (this.#notBefore.get(job.id) ?? 0) <= now && waitsFor(job, state) === null)
    const running = [...this.#running.values()].map(({ job }) => job)
    const room = (isHeld: boolean, most: number) =>
      most - running.filter((job) => isOfPause(job) === isHeld).length
    let [held, others] = [room(true, maxHeldRunning), room(false, maxRunning)]
    return this.#inTurns(due).filter((job) => (isOfPause(job) ? held-- : others--) > 0)
  }

  /** The oldest first, of each destination one in turn: those of one that is paused often keep no other waiting. */
  #inTurns(due: readonly ReplayJob[]): ReplayJob[] {
    const turns = new Map<string, number>()
    for (const { job } of this.#running.values()) turns.set(ofJob(job), (turns.get(ofJob(job)) ?? 0) + 1)
    const placed = due.map((job) => {
      const turn = turns.get(ofJob(job)) ?? 0
      turns.set(ofJob(job), turn + 1)
      return { job, turn }
    })
    return placed.toSorted((a, b) => a.turn - b.turn).map(({ job }) => job)
  }

  #begin(job: ReplayJob, signal: AbortSignal): void {
    const work = this.#runOne(job, signal).finally(() => this.#running.delete(job.id))
    this.#running.set(job.id, { job, work })
  }

  async #runOne(job: ReplayJob, signal: AbortSignal): Promise<void> {
    const { log } = this.#rig
    const about = { replay: job.id, destinations: destinationsOf(job) }
    const reader =
      job.deadLetters === null ? (this.#read.get(job.id) ?? new FactsReader(job, this.#rig)) : null
    this.#read.delete(job.id)
    try {
      const lease = await this.#rig.acquire(job.id)
      try {
        log.info(about, 'a replay begins, or goes on')
        await runReplay(job, this.#rig, lease, reader, signal)
        log.info(about, 'a replay is finished')
      } finally {
        await lease.release()
      }
      this.#notBefore.delete(job.id)
    } catch (error) {
      if (error instanceof ReplayEnded && reader) this.#keep(job.id, reader)
      if (error instanceof ReplayEnded || signal.aborted) return
      this.#notBefore.set(job.id, performance.now() + tryAgainMs)
      // Another process runs it.
      if (error instanceof PostriderError && error.code === 'conflict') return
      log.warn({ ...about, error: messageOf(error) }, 'a replay was interrupted; it goes on soon')
    }
  }

  #keep(id: string, reader: FactsReader): void {
    const isRunning = (each: string) => this.#rig.settings.state.replays.get(each)?.state === 'running'
    for (const kept of this.#read.keys()) if (!isRunning(kept)) this.#read.delete(kept)
    if (isRunning(id) && this.#read.size < maxRunning + maxHeldRunning) this.#read.set(id, reader)
  }

  /** Of several consoles one starts it: its id is the pause's. */
  async #startHeld(signal: AbortSignal): Promise<void> {
    const { settings, log, now } = this.#rig
    const { destinations, replays } = settings.state
    for (const { id: destinationId, endedPauses } of destinations.values())
      for (const { id: pauseId, since, endedAt, rate } of endedPauses) {
        const id = heldReplayId(pauseId)
        // What was held then is gone, and its replay may be forgotten.
        if (signal.aborted || replays.has(id) || endedAt < now() - replaysKeptMs) continue
        const terms = {
          deadLetters: null,
          destinationId,
          only: replayKinds.slice(0, 1),
          since: Math.max(0, since - beforePauseMs),
          until: endedAt,
          types: null,
          events: null,
          user: null,
          messageId: null,
          rate,
        }
        try {
          await settings.perform({ type: 'start_replay', id, terms, pauseId, keptSince: null, at: now() })
        } catch (error) {
          log.warn({ pause: pauseId, error: messageOf(error) }, 'the replay of a pause cannot be started yet')
          return
        }
      }
  }
}

const lookAgainMs = 1_000

/** How long a replay keeps its place while its destination is disabled or paused, in ms. Then others have it. */
const leaveAfterMs = 10_000

/** It was paused, cancelled or finished elsewhere, or leaves its place: nothing is wrong. */
export class ReplayEnded extends Error {}

/**
 * Runs a replay to its end, from where the last process stopped. Throws ReplayEnded, `conflict` when the lease was lost,
 * and what the rig rejects with.
 *
 * @param reader what it has read so far, of a replay of calls; null for one of dead letters
 */
export async function runReplay(
  job: ReplayJob,
  rig: ReplayRig,
  lease: ReplayLease,
  reader: FactsReader | null,
  signal: AbortSignal,
): Promise<void> {
  const topic = await rig.openTopic()
  // A write that waits for brokers ends with it.
  const close = () => topic.close()
  signal.addEventListener('abort', close, { once: true })
  try {
    const before = await rig.progress(job.id)
    const turn = () => waitForTurn(job, rig, lease, signal)
    const outbox = new ReplayOutbox({ job, topic, lease, before, signal, turn })
    await sendAll(job, rig, outbox, reader, signal)
    const { totals } = outbox
    await rig.settings.perform({ type: 'finish_replay', id: job.id, at: rig.now(), totals })
  } finally {
    signal.removeEventListener('abort', close)
    close()
  }
}

async function sendAll(
  job: ReplayJob,
  rig: ReplayRig,
  outbox: ReplayOutbox,
  reader: FactsReader | null,
  signal: AbortSignal,
): Promise<void> {
  try {
    await rig.settings.catchUp(signal)
    await (
      job.deadLetters === null
        ? new CallRun(job, rig, outbox, reader ?? new FactsReader(job, rig), signal)
        : new DeadLetterRun(job, rig, outbox, signal)
    ).run()
  } catch (error) {
    // Left in good order, it repeats nothing of what was acknowledged when it goes on.
    if (error instanceof ReplayEnded || signal.aborted) await outbox.commit().catch(() => {})
    throw error
  }
}

/** While its destination is disabled or paused it waits: forwarders would skip or hold what it sends. */
async function waitForTurn(
  job: ReplayJob,
  { settings }: ReplayRig,
  lease: ReplayLease,
  signal: AbortSignal,
): Promise<void> {
  const began = performance.now()
  for (;;) {
    signal.throwIfAborted()
    lease.check()
    if (settings.state.replays.get(job.id)?.state !== 'running') throw new ReplayEnded()
    if (waitsFor(job, settings.state) === null) return
    if (performance.now() - began >= leaveAfterMs) throw new ReplayEnded()
    await pause(lookAgainMs, signal)
  }
}
