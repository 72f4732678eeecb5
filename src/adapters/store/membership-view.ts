import { join } from 'node:path'
import type { Kafka } from 'kafkajs'
import type { MembershipStore, StagedList as StagedListPort } from '../../console/computations/memberships.ts'
import type { Membership, PlacedMembership } from '../../core/audience/membership.ts'
import { IgnoredRecords, type IgnoredCounts } from '../folded-log/ignored-records.ts'
import { clusterIdOf } from '../kafka/admin/cluster-id.ts'
import { readBetween } from '../kafka/read/read-range.ts'
import { fetchRange } from '../kafka/read/topic-offsets.ts'
import type { OffsetRange } from '../kafka/read/topic-offsets.ts'
import type { TopicRecord } from '../kafka/read/topic-record.ts'
import type { RecordCodec } from '../schema-registry/record-codec.ts'
import { deletionsKeptMs } from '../kafka/admin/topic-specs.ts'
import type { Logger } from '../log.ts'
import { whenKnown } from '../../when-known.ts'
import { MembershipDatabase, type Position } from './membership-database.ts'
import { FileStagedList } from './staged-list.ts'

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
  readonly #file: string
  readonly #database: MembershipDatabase
  readonly #ignored: IgnoredRecords
  #catchingUp: Promise<void> = Promise.resolve()

  private constructor(options: MembershipViewOptions, cluster: string) {
    this.#options = options
    this.#ignored = new IgnoredRecords(options.log, options.counts)
    this.#file = join(options.folder, `${options.topic}.sqlite`)
    this.#database = new MembershipDatabase(this.#file, `${cluster} ${options.topic}`)
  }

  /** Reads nothing yet. Throws `kafka_unavailable`, and `local` for the file. */
  static async open(options: MembershipViewOptions): Promise<MembershipView> {
    return new MembershipView(options, await clusterIdOf(options.kafka))
  }

  /** Throws `setup`, `kafka_unavailable` and `registry_unavailable`. */
  catchUp(signal?: AbortSignal): Promise<void> {
    const result = this.#catchingUp.then(() => this.#catchUp(signal))
    this.#catchingUp = result.catch(() => {})
    return result
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
    const positions = this.#database.positions()
    const newest = Math.max(-1, ...[...positions.values()].map((position) => position.newest))
    // From the first record that is newer than all that the view holds: it must lie behind them.
    const found = await fetchRange(kafka, topic, newest + 1)
    const reason = this.#distrust(found, positions, now())
    if (reason !== null) {
      log.warn({ topic, file: this.#file }, `${reason}: its view is rebuilt`)
      this.#database.clear()
      positions.clear()
    }
    const ranges = found.map(({ partition, high }) => ({
      partition,
      low: positions.get(partition)?.next ?? 0,
      high,
    }))
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

  /** Why what the view holds cannot be trusted, if so. */
  #distrust(
    ranges: readonly OffsetRange[],
    positions: ReadonlyMap<number, Position>,
    now: number,
  ): string | null {
    const next = (partition: number) => positions.get(partition)?.next ?? 0
    if ([...positions].some(([partition]) => !ranges.some((range) => range.partition === partition)))
      return 'the topic was recreated'
    if (ranges.some(({ partition, low, high }) => next(partition) > Math.min(low, high)))
      return 'the topic was recreated'
    const { caughtUpAt } = this.#database.state
    const isBehind = ranges.some(({ partition, high }) => next(partition) < high)
    if (isBehind && positions.size > 0 && now - caughtUpAt > maxAgeMs)
      return 'records may have been deleted unseen'
    return null
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
