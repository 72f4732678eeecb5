import type { DeadLetter } from '../../core/delivery/delivery.ts'
import { ReplayFacts, SettingsEpochs } from '../../core/replay/replay-facts.ts'
import type { CallReplay } from '../../core/replay/replay-job.ts'
import { heldReplayId } from '../../core/replay/replay-rules.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { whenKnown } from '../../when-known.ts'
import type { StoredRecord } from '../dead-letters/dead-letters.ts'
import type { LedgerFollower, LedgerReader, ReplaySource, ReplayRig } from './rig.ts'
import { ForwarderVersions } from './terms.ts'

interface Asked {
  follower: LedgerFollower
  signal: AbortSignal
  done: PromiseWithResolvers<void>
}

/**
 * Reads the ledger for the replays of a process: once for all that ask at the same time. Each reading it for itself, a
 * dozen pauses of one destination took hours of a core.
 */
export class LedgerPasses implements LedgerReader {
  readonly #source: Pick<ReplaySource, 'spans' | 'each' | 'eventsOf'>
  readonly #topic: string
  #asked: Asked[] = []
  #isRunning = false

  constructor(source: Pick<ReplaySource, 'spans' | 'each' | 'eventsOf'>, topic: string) {
    this.#source = source
    this.#topic = topic
  }

  read(follower: LedgerFollower, signal: AbortSignal): Promise<void> {
    const done = Promise.withResolvers<void>()
    const stop = () => done.reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    this.#asked.push({ follower, signal, done })
    if (!this.#isRunning) void this.#run()
    return done.promise.finally(() => signal.removeEventListener('abort', stop))
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    // Those that are about to ask, as at a console's start, are in the first pass.
    await Promise.resolve()
    while (this.#asked.length > 0) {
      const asked = this.#asked
      this.#asked = []
      await this.#pass(asked).then(
        () => asked.forEach(({ done }) => done.resolve()),
        (error: unknown) => asked.forEach(({ done }) => done.reject(error)),
      )
    }
    this.#isRunning = false
  }

  async #pass(asked: readonly Asked[]): Promise<void> {
    const nobody = new AbortController()
    const look = () => {
      if (asked.every(({ signal }) => signal.aborted)) nobody.abort()
    }
    for (const { signal } of asked) signal.addEventListener('abort', look, { once: true })
    try {
      look()
      await this.#takeAll(
        asked.map(({ follower }) => follower),
        nobody.signal,
      )
    } finally {
      for (const { signal } of asked) signal.removeEventListener('abort', look)
    }
  }

  async #takeAll(followers: readonly LedgerFollower[], signal: AbortSignal): Promise<void> {
    for (const follower of followers) {
      if (follower.next) continue
      const begun = await this.#source.spans(this.#topic, follower.from)
      follower.next = new Map(begun.map(({ partition, low }) => [partition, low]))
    }
    const startOf = ({ next }: LedgerFollower, partition: number) => next!.get(partition) ?? 0
    const spans = (await this.#source.spans(this.#topic)).map(({ partition, low, high }) => {
      const first = Math.min(...followers.map((each) => startOf(each, partition)))
      return { partition, low: Math.max(low, first), high }
    })
    const eventOf = this.#source.eventsOf([...new Set(followers.map((each) => each.destinationId))])
    await this.#source.each(
      this.#topic,
      spans,
      ({ partition, offset, value, timestamp }) =>
        whenKnown(eventOf(value), (event) => {
          if (!event) return
          for (const follower of followers)
            if (offset >= startOf(follower, partition)) follower.add(event, timestamp)
        }),
      signal,
    )
    signal.throwIfAborted()
    for (const { next } of followers) for (const { partition, high } of spans) next!.set(partition, high)
  }
}

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
