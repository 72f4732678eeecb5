import { isDeleteId } from '../erasure/deletion.ts'
import type { DeliveryEvent } from '../ledger/delivery-event.ts'
import type { Heartbeat } from '../ledger/heartbeat.ts'
import {
  addTally,
  confirmTally,
  hasPending,
  newTallyChain,
  type TallyChain,
  type TallyVerdict,
} from '../ledger/tally-chain.ts'
import {
  addRollup,
  countsOfCollected,
  countsOfTally,
  negative,
  spanMs,
  subjectKey,
  type RollupCounts,
} from './rollup.ts'

/** The partition that tallies are about. */
export interface TalliedPartition {
  group: string
  topic: string
  partition: number
}

/** A process as its newest heartbeat shows it. */
export interface SeenProcess {
  heartbeat: Heartbeat
  /** When the broker appended it, epoch ms. */
  seenAt: number
}

/** How far the summaries of one process were counted. */
export interface SummariesSeen {
  sequence: number
  /** Epoch ms. */
  seenAt: number
}

/** What is kept of a tally until it is known whether it counts. */
export interface PendingCounts {
  id: string
  /** When it was made, epoch ms. */
  at: number
  /** By subject key. */
  counts: [subject: string, counts: RollupCounts][]
}

/** The tallies of one partition. */
export type PendingChain = TallyChain<PendingCounts>

/** A delivery that became a dead letter. */
export interface DeadDelivery {
  destinationId: string
  reason: string
  /** Epoch ms. */
  at: number
  /** Of a call that asks to forget a user. */
  isDelete: boolean
}

/** What has to be remembered between two records. */
export interface RollupState {
  /** By `partitionKey`. */
  chains: Map<string, PendingChain>
  /** By instance. */
  summaries: Map<string, SummariesSeen>
}

/** What was folded since it was last taken. Counts are to be added; the others replace what there was. */
export interface RollupDelta {
  /** By subject key, then by minute: epoch ms. */
  counts: Map<string, Map<number, RollupCounts>>
  chains: Map<string, PendingChain>
  summaries: Map<string, SummariesSeen>
  processes: Map<string, SeenProcess>
  /** By delivery id; null where it came to another end since, as by a replay. */
  dead: Map<string, DeadDelivery | null>
}

const noDelta = (): RollupDelta => ({
  counts: new Map(),
  chains: new Map(),
  summaries: new Map(),
  processes: new Map(),
  dead: new Map(),
})

export const partitionKey = ({ group, topic, partition }: TalliedPartition): string =>
  JSON.stringify([group, topic, partition])

function partitionOf(key: string): TalliedPartition {
  const [group, topic, partition] = JSON.parse(key) as [string, string, number]
  return { group, topic, partition }
}

/**
 * Folds the ledger into counts by minute. However the records are divided among several folds, each of which goes on from
 * the state of the one before, the sums are the same.
 */
export class RollupFold {
  readonly #callsGroup: string
  readonly #retriesGroup: string
  readonly #replays: string
  readonly #state: RollupState
  #delta = noDelta()

  /**
   * @param groups of the forwarders: tallies of others are of another deployment; `replays` is the topic of replays
   */
  constructor(groups: { calls: string; retries: string; replays: string }, state: RollupState) {
    this.#callsGroup = groups.calls
    this.#retriesGroup = groups.retries
    this.#replays = groups.replays
    this.#state = state
  }

  /** In the order in which the records of a partition of the ledger lie. @param appendedAt epoch ms, by the broker */
  add(event: DeliveryEvent, appendedAt: number): void {
    const { tally, collected, heartbeat } = event
    if (tally) this.#addTally(event, tally)
    else if (collected) this.#addCollected(event, collected, appendedAt)
    else if (heartbeat) this.#addHeartbeat(heartbeat, appendedAt)
    else if (event.type === 'disposition') this.#addDisposition(event)
  }

  /** What the committed metadata of a partition names as its newest tally. */
  confirm(place: TalliedPartition, tallyId: string): void {
    const key = partitionKey(place)
    const chain = this.#state.chains.get(key)
    const verdicts = chain ? confirmTally(chain, tallyId) : []
    if (verdicts.length === 0) return
    this.#delta.chains.set(key, chain!)
    this.#count(verdicts)
  }

  /** Partitions with tallies that are not known to count. */
  unconfirmed(): TalliedPartition[] {
    return [...this.#state.chains].filter(([, chain]) => hasPending(chain)).map(([key]) => partitionOf(key))
  }

  /** What was folded since the last call. */
  take(): RollupDelta {
    const delta = this.#delta
    this.#delta = noDelta()
    return delta
  }

  #addTally({ topic, partition, at }: DeliveryEvent, tally: NonNullable<DeliveryEvent['tally']>): void {
    const { group } = tally
    const isPlanned = group === this.#callsGroup
    if (topic === null || partition === null || (!isPlanned && group !== this.#retriesGroup)) return
    const key = partitionKey({ group, topic, partition })
    let chain = this.#state.chains.get(key)
    if (!chain) this.#state.chains.set(key, (chain = newTallyChain()))
    const counts = tally.counts.map((each): PendingCounts['counts'][number] => [
      subjectKey({ kind: 'destination', id: each.destinationId ?? '' }),
      countsOfTally(each, isPlanned ? 'planned' : topic === this.#replays ? 'replayed' : 'cameDue'),
    ])
    this.#count(addTally(chain, tally, { id: tally.id, at, counts }))
    this.#delta.chains.set(key, chain)
  }

  #count(verdicts: readonly TallyVerdict<PendingCounts>[]): void {
    for (const { kept, counts } of verdicts)
      for (const [subject, its] of kept.counts)
        this.#addCounts(subject, kept.at, counts ? its : negative(its))
  }

  /** A summary that was written twice has a number that was counted. */
  #addCollected(
    { sourceId }: DeliveryEvent,
    { instance, sequence, to, ...counts }: NonNullable<DeliveryEvent['collected']>,
    seenAt: number,
  ): void {
    const { summaries } = this.#state
    if (sourceId === null || sequence <= (summaries.get(instance)?.sequence ?? 0)) return
    const seen = { sequence, seenAt }
    summaries.set(instance, seen)
    this.#delta.summaries.set(instance, seen)
    this.#addCounts(subjectKey({ kind: 'source', id: sourceId }), to, countsOfCollected(counts))
  }

  /** The ledger names every delivery that failed finally, and every one that was delivered after it had waited. */
  #addDisposition({
    deliveryId,
    destinationId,
    disposition,
    reason,
    at,
    callType,
    messageId,
  }: DeliveryEvent): void {
    if (deliveryId === null || destinationId === null) return
    if (disposition === 'dead_lettered') {
      const isDelete = callType === 'delete' || isDeleteId(messageId ?? '')
      this.#delta.dead.set(deliveryId, { destinationId, reason: reason ?? 'unknown', at, isDelete })
    } else if (disposition === 'delivered' || disposition === 'skipped' || disposition === 'erased')
      this.#delta.dead.set(deliveryId, null)
  }

  /** Without what URLs responded: that is for operational events, and the view need not hold it. */
  #addHeartbeat({ endpoints, ...rest }: Heartbeat, seenAt: number): void {
    const heartbeat = { ...rest, endpoints: endpoints.map((each) => ({ ...each, lastFailure: null })) }
    this.#delta.processes.set(heartbeat.instance, { heartbeat, seenAt })
  }

  #addCounts(subject: string, at: number, counts: RollupCounts): void {
    const minute = Math.floor(at / spanMs.minute) * spanMs.minute
    let minutes = this.#delta.counts.get(subject)
    if (!minutes) this.#delta.counts.set(subject, (minutes = new Map()))
    let sum = minutes.get(minute)
    if (!sum) minutes.set(minute, (sum = {}))
    addRollup(sum, counts)
  }
}
