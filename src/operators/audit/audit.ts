import {
  deliveryIdIn,
  isRun,
  offsetsOf,
  placesBefore,
  type TierRecord,
} from '../../core/delivery/deferred-run.ts'
import type { DeadLetter, RetryDelivery } from '../../core/delivery/delivery.ts'
import type { AuditReport, AuditedPartition, PartitionId } from '../../core/ledger/audit-report.ts'
import { Audit, type PublishedRecord } from '../../core/ledger/audit.ts'
import type { Tally } from '../../core/ledger/tally.ts'
import type { Place } from '../../core/ledger/trace.ts'

/** What is being read, in this order. */
export type AuditPhase = 'tallies' | 'calls' | 'tiers' | 'dead letters'

export interface AuditOptions {
  /** Epoch ms; null: as far back as the ledger goes. */
  since: number | null
  /** Epoch ms; null: up to now. */
  until: number | null
  signal?: AbortSignal | undefined
  progress?: (phase: AuditPhase, done: number, total: number) => void
}

/** Forwarders' clocks, which tallies go by, and brokers' may differ by this; and a commit may be late by as much. */
const marginMs = 600_000

/** Reads what there is in Kafka now, and proves or disproves that every call is accounted for. Forwarders may run. */
export async function audit(
  source: AuditSource,
  newKeySet: () => KeySet,
  options: AuditOptions,
): Promise<AuditReport> {
  const { since, until, signal } = options
  const snapshot = await source.snapshot()
  const fold = new Audit({ ...snapshot, until: until ?? Infinity })
  const reading = (phase: AuditPhase, from: number | null): AuditReadOptions => ({
    since: from,
    signal,
    progress: (done, total) => options.progress?.(phase, done, total),
  })
  // The clock of the next owner, or the same one set back, may be behind: left out, its tally would be a gap.
  const begun = new Set<string>()
  await source.tallies(reading('tallies', since), (place, tally, at) => {
    const key = `${tally.group}/${place.topic}/${place.partition}`
    if (since !== null && at < since && !begun.has(key)) return
    begun.add(key)
    fold.addTally(place, tally, at)
  })
  fold.endTallies()
  const early = since === null ? null : since - marginMs
  const keys = newKeySet()
  try {
    const calls = snapshot.partitions
      .filter(({ topic }) => !snapshot.isTier(topic))
      .flatMap(({ topic, partition }) => {
        const range = fold.rangeOf({ topic, partition })
        return range ? [{ topic, partition, ...range }] : []
      })
    await source.calls(calls, reading('calls', null), (place, offset) => fold.addCall(place, offset))
    await source.retries(fold.starts(), reading('tiers', early), (record) =>
      fold.addRetry(record, scheduled(record, keys)),
    )
    await source.deadLetters(reading('dead letters', early), (record) =>
      fold.addDeadLetter(
        published(record, record.value && { ...record.value, ...record.value.delivery }, keys, 'dead_letter'),
      ),
    )
  } finally {
    keys.close()
  }
  return fold.report()
}

/** The deliveries that a record of a tier stands for. */
function* scheduled(record: Located<TierRecord>, keys: KeySet): Iterable<PublishedRecord> {
  const { value } = record
  if (value === null || !isRun(value)) {
    yield published(record, value, keys, 'retry')
    return
  }
  const { destinationId, owner, calls } = value
  const froms = placesBefore(value)[Symbol.iterator]()
  for (const offset of offsetsOf(calls)) {
    const { topic, partition } = calls
    const origin = { topic, partition, offset, appendedAt: null }
    const from = { ...(froms.next().value as Place), appendedAt: null }
    // The message's id is not known here: its place tells it from others.
    yield published(
      record,
      { id: deliveryIdIn(value, ''), destinationId, owner, from, origin },
      keys,
      'retry',
    )
  }
}

type Known = Pick<RetryDelivery | DeadLetter, 'from' | 'owner' | 'origin'> & {
  id?: string
  destinationId?: string
}

/** @param known what could be read of it; null where nothing could: it counts as one that no forwarder published */
function published(
  { topic, partition, offset }: Located<unknown>,
  known: Known | null,
  keys: KeySet,
  kind: 'retry' | 'dead_letter',
): PublishedRecord {
  const from = known?.from ?? null
  const deliveryId = known?.id ?? null
  const owner = known?.owner ?? ''
  const { partition: callPartition, offset: call } = known?.origin ?? {}
  // A call that its sender wrote twice can be in one run twice.
  const isNew =
    from === null ||
    keys.add(
      JSON.stringify([kind, from.topic, from.partition, from.offset, deliveryId, owner, callPartition, call]),
    )
  return {
    topic,
    partition,
    offset,
    from,
    owner,
    destinationId: known?.destinationId ?? null,
    deliveryId,
    repeated: !isNew,
  }
}

/** Kafka at one moment. Commits are read first, so all that they cover lies before the ends. */
export interface AuditSnapshot {
  /** Calls and retry tiers. */
  partitions: AuditedPartition[]
  isTier(topic: string): boolean
  /** Epoch ms; what is older may have been removed by the topics' retention. */
  retriesKeptSince: number
  deadLettersKeptSince: number
}

export interface AuditReadOptions {
  /** Epoch ms: nothing that was written before. */
  since: number | null
  signal?: AbortSignal | undefined
  /** Called with the number of offsets read so far, and of all to read. */
  progress(done: number, total: number): void
}

/** A record with its value as far as it can be read. */
export interface Located<T> extends PartitionId {
  offset: number
  value: T | null
}

/** Kafka, as the audit reads it: everything up to the moment of the snapshot. */
export interface AuditSource {
  snapshot(): Promise<AuditSnapshot>
  /** In the order of each partition's tallies. Times are epoch ms. */
  tallies(
    options: AuditReadOptions,
    each: (place: PartitionId, tally: Tally, at: number) => void,
  ): Promise<void>
  /** Each record of the calls within these bounds. */
  calls(
    ranges: readonly (PartitionId & { low: number; high: number })[],
    options: Omit<AuditReadOptions, 'since'>,
    each: (place: PartitionId, offset: number) => void,
  ): Promise<void>
  /** What the tiers hold; also what lies at `starts` or beyond, however old. */
  retries(
    starts: readonly (PartitionId & { from: number })[],
    options: AuditReadOptions,
    each: (record: Located<TierRecord>) => void,
  ): Promise<void>
  deadLetters(options: AuditReadOptions, each: (record: Located<DeadLetter>) => void): Promise<void>
}

/** A set of keys of any size, in memory that does not grow with it. */
export interface KeySet {
  /** False: it was there before. */
  add(key: string): boolean
  close(): void
}
