import type { OutgoingRecord, RecordSink } from './ports.ts'

interface Waiting {
  record: OutgoingRecord
  bytes: number
  done: () => void
  tooLarge: () => void
}

/** A lot stays below the broker's limit on a partition's batch whichever partition its records fall to. */
const lotBytes = 512 * 1024
const lotRecords = 1_000
/** What a record costs beside its key and value, at most: framing and our headers. */
const recordOverheadBytes = 512

/**
 * Appends retry records and dead letters in lots, acks=all, one lot a topic at a time: what comes meanwhile makes
 * the next one. `done` of each record is called once the broker has it.
 */
export class HandOver {
  readonly #sink: RecordSink
  readonly #maxRecordBytes: number
  readonly #topics = new Map<string, { waiting: Waiting[]; sending: boolean }>()
  readonly #onFailure: (error: unknown) => void
  #open = 0
  #idle: (() => void)[] = []

  /**
   * @param maxRecordBytes what the topics take (max.message.bytes)
   * @param onFailure a record can be kept nowhere: the process must not go on as if it were
   */
  constructor(sink: RecordSink, maxRecordBytes: number, onFailure: (error: unknown) => void) {
    this.#sink = sink
    this.#maxRecordBytes = maxRecordBytes
    this.#onFailure = onFailure
  }

  /** Records appended whose `done` is still to come. */
  get open(): number {
    return this.#open
  }

  append(topic: string, record: OutgoingRecord, done: () => void, tooLarge: () => void): void {
    const bytes = record.value.length + (record.key?.length ?? 0) + recordOverheadBytes
    if (bytes > this.#maxRecordBytes) {
      tooLarge()
      return
    }
    this.#open++
    let queue = this.#topics.get(topic)
    if (!queue) this.#topics.set(topic, (queue = { waiting: [], sending: false }))
    queue.waiting.push({ record, bytes, done, tooLarge })
    if (!queue.sending) {
      queue.sending = true
      // In the same turn of the event loop more may come.
      setImmediate(() => {
        this.#drain(topic, queue).catch(this.#onFailure)
      })
    }
  }

  /** Resolves once all that was appended is with the broker. */
  async settled(): Promise<void> {
    if (this.#open === 0) return
    await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  async #drain(topic: string, queue: { waiting: Waiting[]; sending: boolean }): Promise<void> {
    while (queue.waiting.length > 0) {
      const lot = takeLot(queue.waiting)
      await this.#send(topic, lot)
    }
    queue.sending = false
  }

  async #send(topic: string, lot: Waiting[]): Promise<void> {
    const result = await this.#sink.append([{ topic, records: lot.map(({ record }) => record) }])
    if (result === 'too_large' && lot.length > 1) {
      for (const one of lot) await this.#send(topic, [one])
      return
    }
    this.#open -= lot.length
    for (const one of lot) {
      if (result === 'ok') one.done()
      else one.tooLarge()
    }
    if (this.#open === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }
}

function takeLot(waiting: Waiting[]): Waiting[] {
  let bytes = 0
  let count = 0
  while (count < waiting.length && count < lotRecords) {
    bytes += waiting[count]!.bytes
    if (count > 0 && bytes > lotBytes) break
    count++
  }
  return waiting.splice(0, count)
}
