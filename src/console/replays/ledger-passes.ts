import { whenKnown } from '../../when-known.ts'
import type { LedgerFollower, LedgerReader, ReplaySource } from './replay-source.ts'

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
