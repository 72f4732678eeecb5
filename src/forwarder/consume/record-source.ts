// What consuming needs from outside: a member of a consumer group.

export interface TopicPartition {
  topic: string
  partition: number
}

/** A record as it was fetched. */
export interface FetchedRecord {
  readonly offset: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  /** When the broker appended it, epoch milliseconds; null when it does not say. */
  readonly timestamp: number | null
  /** That time is the broker's for sure: in a topic of another kind it is whatever the producer says. */
  readonly isStampedByBroker: boolean
  /** Why no record of the batch that it stands for can be read; its value is that batch's bytes. Null for a record. */
  readonly problem: string | null
  /** The value of the header of that name; null where there is none. */
  header(name: string): Buffer | null
}

/** Records of one partition, ascending, each made when it is asked for. */
export interface FetchedRecords {
  readonly length: number
  /** What they take in memory, all together and until the last of them is done with. */
  readonly bytes: number
  offsetAt(index: number): number
  at(index: number): FetchedRecord
}

/** What one fetch brought of a partition. */
export interface FetchedBatch {
  /** Empty when there were only control records. */
  records: FetchedRecords
  /** The offset that was asked for, and one past the last one that the batch covers. */
  from: number
  to: number
}

export interface CommittedPartition extends TopicPartition {
  /** Null where nothing was committed yet. */
  position: number | null
  metadata: string | null
  /** The first offset that the log still holds. */
  logStart: number
}

export interface PartitionCommit extends TopicPartition {
  position: number
  metadata: string
}

/** Receives the assignments of a group member. Called synchronously, in the order of events. */
export interface RecordListener {
  /**
   * A new epoch: exactly these partitions are ours now. `continued` is false when the membership was broken in
   * between (a new member id), so that another member may have owned any of them.
   */
  assigned(partitions: readonly TopicPartition[], owner: string, continued: boolean): void
  /**
   * The group is about to rebalance, and nothing starts any more until the next `assigned`: resolves once what is
   * finished by now is committed, which it cannot be later. The group waits for it, though not for ever.
   */
  rejoining(): Promise<void>
  /** Nothing is ours any more, until the next `assigned`. */
  lost(): void
  fetched(topic: string, partition: number, batch: FetchedBatch): void
  /**
   * The log of a partition was cut off: what was read of it from `from` up to, not including, `to` is gone, and what comes
   * now has these offsets again. The next fetch begins at `from`, unless it is sent elsewhere. False where committed offsets
   * are not known yet: it comes again after the next `seek`.
   */
  cutOff(topic: string, partition: number, from: number, to: number): boolean
}

/** A member of a consumer group that enqueues and never waits. */
export interface RecordSource {
  readonly groupId: string
  start(listener: RecordListener): Promise<void>
  /** Rejects when the source cannot go on. */
  readonly failed: Promise<never>
  committed(partitions: readonly TopicPartition[]): Promise<CommittedPartition[]>
  /** True once the broker has acknowledged it under the present epoch; false when it has not: nothing is known. */
  commit(commits: readonly PartitionCommit[]): Promise<boolean>
  pause(partition: TopicPartition): void
  resume(partition: TopicPartition): void
  /** The next fetch begins there. */
  seek(partition: TopicPartition, offset: number): void
  /** False once the last heartbeat is older than two thirds of the session timeout. */
  isFresh(): boolean
  /** False also while the group rebalances: requests sent then could not be committed if their partition moves. */
  mayStart(): boolean
  /** Connected and a member of its group. */
  isReady(): boolean
  /** Why it is not, for people; null where that is not known. */
  trouble(): string | null
  /** Leaves the group. */
  stop(): Promise<void>
}
