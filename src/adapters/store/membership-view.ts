import { join } from 'node:path'
import type { Kafka } from 'kafkajs'
import type { Membership } from '../../core/membership.ts'
import { PostriderError } from '../../errors.ts'
import { fetchRange } from '../kafka/topic-offsets.ts'
import { TopicReader, type TopicRecord } from '../kafka/topic-reader.ts'
import type { Logger } from '../log.ts'
import { MembershipDatabase, type ViewRecord } from './membership-database.ts'

const lotSize = 5_000

export interface MembershipViewOptions {
  kafka: Kafka
  topic: string
  groupId: string
  /** STORE_PATH. */
  folder: string
  codec: { decode(value: Buffer): Promise<Membership>; tryDecode(value: Buffer): Membership | undefined }
  log: Logger
}

/** Follows the memberships' topic into its database. Close it. */
export class MembershipView {
  readonly database: MembershipDatabase
  readonly #reader: TopicReader
  readonly #codec: MembershipViewOptions['codec']
  readonly #openRoom: () => MembershipDatabase
  #lot: ViewRecord[] = []

  private constructor(
    options: MembershipViewOptions,
    database: MembershipDatabase,
    openRoom: () => MembershipDatabase,
  ) {
    const { kafka, topic, groupId, log } = options
    this.database = database
    this.#openRoom = openRoom
    this.#codec = options.codec
    this.#reader = new TopicReader({
      kafka,
      topic,
      groupPrefix: `${groupId}.memberships`,
      log,
      maxWaitMs: 50,
      from: database.positions(),
      onRecord: (record) => this.#take(record),
    })
  }

  /** Resolves once it holds all that the topic held. Throws `setup`, `kafka_unavailable`, and `local` for the file. */
  static async open(options: MembershipViewOptions, signal?: AbortSignal): Promise<MembershipView> {
    const { kafka, topic, folder, log } = options
    const ranges = await fetchRange(kafka, topic)
    const file = join(folder, `${topic}.sqlite`)
    const origin = `${await clusterOf(kafka)} ${topic}`
    const openRoom = () => new MembershipDatabase(file, origin)
    const database = openRoom()
    const positions = database.positions()
    const highs = new Map(ranges.map(({ partition, high }) => [partition, high]))
    if ([...positions].some(([partition, next]) => next > (highs.get(partition) ?? 0))) {
      log.warn({ topic, file }, 'the topic was made anew: its view is built again')
      database.clear()
    }
    const view = new MembershipView(options, database, openRoom)
    try {
      await view.#reader.start(signal)
      view.#flush()
      return view
    } catch (error) {
      await view.close()
      throw error
    }
  }

  /** Resolves when closed; rejects when the topic holds what cannot be read. */
  get ended(): Promise<void> {
    return this.#reader.ended
  }

  /** A connection of its own to the same view, with room for one list. Close it. */
  openRoom(): MembershipDatabase {
    return this.#openRoom()
  }

  async catchUp(): Promise<void> {
    await this.#reader.readToEnd()
    this.#flush()
  }

  async close(): Promise<void> {
    await this.#reader.close()
    this.database.close()
  }

  #take(record: TopicRecord): void | Promise<void> {
    if (record.value === null) return this.#hold(record, null)
    const membership = this.#codec.tryDecode(record.value)
    if (membership !== undefined) return this.#hold(record, membership)
    return this.#codec.decode(record.value).then((decoded) => this.#hold(record, decoded))
  }

  #hold({ partition, offset, key }: TopicRecord, membership: Membership | null): void {
    const at = key?.toString('utf8') ?? ''
    const slash = at.indexOf('/')
    if (membership === null && slash < 0) return
    const { audienceId, userId } = membership ?? {
      audienceId: at.slice(0, slash),
      userId: at.slice(slash + 1),
    }
    this.#lot.push({ partition, offset, audienceId, userId, membership })
    if (this.#lot.length >= lotSize) this.#flush()
  }

  #flush(): void {
    const lot = this.#lot
    this.#lot = []
    if (lot.length > 0) this.database.apply(lot)
  }
}

async function clusterOf(kafka: Kafka): Promise<string> {
  const admin = kafka.admin({ retry: { retries: 1 } })
  try {
    await admin.connect()
    return (await admin.describeCluster()).clusterId
  } catch (error) {
    throw new PostriderError('kafka_unavailable', 'the brokers do not say which cluster they are', {
      cause: error,
    })
  } finally {
    await admin.disconnect().catch(() => {})
  }
}
