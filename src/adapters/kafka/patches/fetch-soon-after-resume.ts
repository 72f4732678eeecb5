import { methodPatch } from './patch.ts'

interface TopicPartitions {
  topic: string
  partitions: number[]
}

interface ConsumerGroup {
  maxWaitTime: number
  subscriptionState: { paused(): TopicPartitions[] }
}

const waits = new WeakMap<ConsumerGroup, FetchWait>()

/**
 * A fetch of kafkajs asks for the partitions that are not paused and waits at the broker until one of them has records,
 * for at most `maxWaitTimeInMs` (5 s unless set); with all partitions paused the loop sleeps for that long. A partition
 * that is resumed meanwhile waits with it. None known upstream; issue 1397 is about the option.
 *
 * Now a fetch waits for a shorter time while partitions are paused: see FetchWait.
 */
export const fetchSoonAfterResume = methodPatch({
  name: 'fetch-soon-after-resume',
  file: 'src/consumer/consumerGroup',
  method: 'fetch',
  fields: { maxWaitTime: 'number', subscriptionState: 'object', 'subscriptionState.paused': 'function' },
  madeWith: { maxWaitTimeInMs: 1 },
  instead(this: ConsumerGroup, fetch: (nodeId: unknown) => Promise<unknown[]>, nodeId: unknown) {
    let wait = waits.get(this)
    if (!wait) waits.set(this, (wait = new FetchWait(this.maxWaitTime)))
    this.maxWaitTime = wait.ms(this.subscriptionState.paused(), performance.now())
    return fetch.call(this, nodeId)
  },
})

/** How long a fetch may wait while partitions are paused, in ms: right after a pause, and once all pauses are long. */
const whilePaused = { min: 50, max: 250 }
/** The part of the time since the last pause that it may wait. */
const share = 1 / 8

/**
 * How long a fetch may wait at the broker. A partition that is resumed during the wait is not part of the fetch, and
 * what it has buffered may not last until the next one: so while any partition is paused a fetch waits for a moment
 * only. Partitions that have been paused for long hold records that are not due yet, and are resumed well before they
 * are: where there are no others a fetch may wait longer, and asks the broker less often.
 */
export class FetchWait {
  readonly #configured: number
  #since = new Map<string, number>()

  /** @param configured how long it may wait with nothing paused, in ms */
  constructor(configured: number) {
    this.#configured = configured
  }

  /** @param paused all partitions that are paused now; @param now monotonic, in ms */
  ms(paused: readonly TopicPartitions[], now: number): number {
    const since = new Map<string, number>()
    let last = -Infinity
    for (const { topic, partitions } of paused) {
      for (const partition of partitions) {
        const key = `${topic}/${partition}`
        const at = this.#since.get(key) ?? now
        since.set(key, at)
        last = Math.max(last, at)
      }
    }
    this.#since = since
    if (since.size === 0) return this.#configured
    return Math.min(this.#configured, whilePaused.max, Math.max(whilePaused.min, (now - last) * share))
  }
}
