import type { ReplayJob } from '../../core/replay/replay-job.ts'
import { pause } from '../../retry-forever.ts'
import { CallRun } from './call-run.ts'
import { waitsFor } from './chosen-calls.ts'
import { DeadLetterRun } from './dead-letter-run.ts'
import { FactsReader } from './facts-reader.ts'
import { ReplayOutbox } from './replay-outbox.ts'
import type { ReplayLease, ReplayRig } from './replay-source.ts'

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
