import { join } from 'node:path'
import type { Kafka } from 'kafkajs'
import type { MembershipStore, StagedList as StagedListPort } from '../../console/computations/memberships.ts'
import type { Membership, PlacedMembership } from '../../core/audience/membership.ts'
import { IgnoredRecords, type IgnoredCounts } from '../folded-log/ignored-records.ts'
import { clusterIdOf } from '../kafka/admin/cluster-id.ts'
import { readBetween } from '../kafka/read/read-range.ts'
import { fetchRanges, type TopicRange } from '../kafka/read/topic-offsets.ts'
import type { TopicRecord } from '../kafka/read/topic-record.ts'
import type { RecordCodec } from '../schema-registry/record-codec.ts'
import { deletionsKeptMs } from '../kafka/admin/topic-specs.ts'
import type { Logger } from '../log.ts'
import { whenKnown } from '../../when-known.ts'
import { MembershipDatabase } from './membership-database.ts'
import { FileStagedList } from './staged-list.ts'
import { TopicView } from './topic-view.ts'

/** Records that are taken in at once. */
const batchSize = 5_000
/** Of each partition: a record takes several times its bytes while it is read. */
const fetchBytes = 128 * 1_024
/** A deletion that was not read within the time that the topic keeps it is never known of; with some room. */
const maxAgeMs = deletionsKeptMs - 6 * 3_600_000

export interface MembershipViewOptions {
  kafka: Kafka
  topic: string
  groupId: string
  /** STORE_PATH. */
  folder: string
  codec: Pick<RecordCodec<Membership>, 'read'>
  log: Logger
  counts?: IgnoredCounts
  /** Epoch milliseconds. */
  now?: () => number
}

/** The memberships' topic, read into its database when it is asked for. Close it. */
export class MembershipView implements MembershipStore {
  readonly #options: MembershipViewOptions
  readonly #database: MembershipDatabase
  readonly #ignored: IgnoredRecords
  readonly #view: TopicView

  private constructor(options: MembershipViewOptions, cluster: string) {
    this.#options = options
    this.#ignored = new IgnoredRecords(options.log, options.counts)
    const file = join(options.folder, `${options.topic}.sqlite`)
    this.#database = new MembershipDatabase(file, `${cluster} ${options.topic}`)
    const { kafka, topic, log } = options
    this.#view = new TopicView({
      name: 'its view',
      file,
      kafka,
      log,
      positions: () =>
        [...this.#database.positions()].map(([partition, each]) => ({ topic, partition, ...each })),
      clear: () => this.#database.clear(),
    })
  }

  /** Reads nothing yet. Throws `kafka_unavailable`, and `local` for the file. */
  static async open(options: MembershipViewOptions): Promise<MembershipView> {
    return new MembershipView(options, await clusterIdOf(options.kafka))
  }

  /** Throws `setup`, `kafka_unavailable` and `registry_unavailable`. */
  catchUp(signal?: AbortSignal): Promise<void> {
    return this.#view.inTurn(() => this.#catchUp(signal))
  }

  count(audienceId: string): number {
    return this.#database.count(audienceId)
  }

  openList(): StagedListPort {
    return new FileStagedList(this.#options.folder, (audienceId, bucket) =>
      this.#database.members(audienceId, bucket),
    )
  }

  writtenBy(audienceId: string, syncId: string): Iterable<Membership[]> {
    return this.#database.writtenBy(audienceId, syncId)
  }

  users(audienceId: string): Iterable<string[]> {
    return this.#database.users(audienceId)
  }

  /** Of this process, acknowledged: what is known need not be read back. */
  takeWritten(records: readonly PlacedMembership[]): void {
    this.#database.takeWritten(records)
  }

  close(): void {
    this.#database.close()
  }

  async #catchUp(signal?: AbortSignal): Promise<void> {
    const { kafka, topic, log, now = Date.now } = this.#options
    const found = await this.#view.ranges(
      [topic],
      (...asked) => fetchRanges(kafka, ...asked),
      signal,
      (ranges) => this.#missed(ranges, now()),
    )
    const ranges = this.#view.unread(found)
    const { beginning } = this.#database.state
    const batch = new MembershipBatch((records) => this.#database.takeRead(records, beginning))
    await readBetween(ranges, {
      kafka,
      topic,
      log,
      fetchBytes,
      signal,
      onRecord: (record) => this.#read(record, batch),
    })
    batch.flush()
    this.#database.caughtUp(new Map(ranges.map(({ partition, high }) => [partition, high])), now(), beginning)
  }

  /** Why what the view holds may lack something, if so. */
  #missed(ranges: readonly TopicRange[], now: number): string | null {
    const { caughtUpAt } = this.#database.state
    const hasRead = this.#database.positions().size > 0
    if (!hasRead || now - caughtUpAt <= maxAgeMs) return null
    const isBehind = this.#view.unread(ranges).some(({ low, high }) => low < high)
    return isBehind ? 'records may have been deleted unseen' : null
  }

  #read(record: TopicRecord, batch: MembershipBatch): void | Promise<void> {
    if (record.problem !== null) return this.#ignored.add(record, record.problem)
    if (record.value === null) return batch.add(record, null)
    // What cannot be read must not fail every sync of every audience, for ever.
    const found = this.#options.codec.read(record.value, (why) => this.#ignored.add(record, why))
    const add = (membership: Membership | null) => {
      if (membership) batch.add(record, membership)
    }
    return whenKnown(found, add)
  }
}

/** Records on their way into the database. */
class MembershipBatch {
  readonly #take: (records: PlacedMembership[]) => void
  #records: PlacedMembership[] = []

  constructor(take: (records: PlacedMembership[]) => void) {
    this.#take = take
  }

  add({ partition, offset, timestamp, key }: TopicRecord, membership: Membership | null): void {
    const at = key?.toString('utf8') ?? ''
    const slash = at.indexOf('/')
    if (membership === null && slash < 0) return
    const { audienceId, userId } = membership ?? {
      audienceId: at.slice(0, slash),
      userId: at.slice(slash + 1),
    }
    this.#records.push({ partition, offset, timestamp, audienceId, userId, membership })
    if (this.#records.length >= batchSize) this.flush()
  }

  flush(): void {
    const records = this.#records
    this.#records = []
    if (records.length > 0) this.#take(records)
  }
}
