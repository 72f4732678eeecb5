import type { DeadLetter } from '../../core/delivery/delivery.ts'
import { ReplayFacts } from '../../core/replay/replay-facts.ts'
import { heldReplayId } from '../../core/replay/replay-rules.ts'
import type { CallReplay } from '../../core/replay/replay-job.ts'
import { SettingsEpochs } from '../../core/replay/settings-epochs.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { whenKnown } from '../../when-known.ts'
import type { StoredRecord } from '../dead-letters/dead-letter-store.ts'
import { ForwarderVersions } from './forwarder-versions.ts'
import type { LedgerFollower, ReplayRig } from './replay-source.ts'

/** What clocks of brokers, and of processes, may differ by. */
const clockSkewMs = 60_000

/** Reads the ledger, the dead letters and the settings' history for one replay, and the ledger on when it is asked to. */
export class FactsReader {
  readonly facts: ReplayFacts
  readonly forwarders = new ForwarderVersions()
  readonly #job: CallReplay
  readonly #rig: ReplayRig
  readonly #from: number
  readonly #follower: LedgerFollower
  #epochs: SettingsEpochs
  #version = -1

  constructor(job: CallReplay, rig: ReplayRig) {
    this.#job = job
    this.#rig = rig
    this.#from = Math.max(0, job.since - clockSkewMs)
    this.#epochs = new SettingsEpochs(job.destinationId)
    const epochs = () => this.#epochs.all
    this.facts = new ReplayFacts({
      destinationId: job.destinationId,
      callsTopic: rig.topics.calls,
      group: rig.groupId,
      createdAt: job.createdAt,
      isHeldBy: (pauseId) => isHeldBy(pauseId, job, rig.settings.state),
      epochs: {
        get all() {
          return epochs()
        },
      },
      seed: rig.random(),
    })
    this.#follower = {
      destinationId: job.destinationId,
      from: this.#from,
      next: null,
      add: (event, appendedAt) => {
        this.facts.addEvent(event, appendedAt)
        if (event.heartbeat) this.forwarders.add(event.heartbeat, appendedAt)
      },
    }
  }

  /** Reads everything that there is now. */
  async readOn(signal: AbortSignal): Promise<void> {
    const { source, settings, ledger } = this.#rig
    if (this.#job.pauseId === null && settings.state.version !== this.#version) {
      const { version } = settings.state
      const epochs = new SettingsEpochs(this.#job.destinationId)
      for await (const { since, state } of source.settings(this.#from, signal)) epochs.add(since, state)
      this.#epochs = epochs
      this.#version = version
    }
    if (this.#follower.next === null && this.#job.pauseId === null) await this.#readDeadLetters(signal)
    await ledger.read(this.#follower, signal)
  }

  async #readDeadLetters(signal: AbortSignal): Promise<void> {
    const { source, topics } = this.#rig
    const spans = await source.spans(topics.deadLetters, this.#from)
    const add = (deadLetter: DeadLetter | null) => {
      if (deadLetter) this.facts.addDeadLetter(deadLetter)
    }
    const take = ({ value }: Pick<StoredRecord, 'value'>) => whenKnown(source.deadLetter(value), add)
    await source.each(topics.deadLetters, spans, take, signal)
    signal.throwIfAborted()
  }
}

/**
 * A pause has a replay of its own, which takes what it held; so another replay takes it only where that one was
 * cancelled.
 */
function isHeldBy(pauseId: string, job: CallReplay, { replays }: SettingsState): boolean {
  if (job.pauseId !== null) return pauseId === job.pauseId
  return replays.get(heldReplayId(pauseId))?.state === 'cancelled'
}
