import type { AnalyticsCall } from '../call/analytics-call.ts'
import { planCall } from '../delivery/call-plan.ts'
import { urlIdOf, type DeadLetter } from '../delivery/delivery.ts'
import type { DeliveryEvent, PlannedDestination } from '../ledger/delivery-event.ts'
import type { DestinationTally, Tally } from '../ledger/tally.ts'
import { fromPairs, type OffsetRun } from '../offsets/offset-runs.ts'
import type { Destination, SettingsState } from '../settings/settings.ts'
import { DeliveryIdSet, OffsetSet } from './offset-set.ts'
import type { ReplayKind } from './replay-job.ts'

/**
 * How long before its tally a call can have been planned, or by settings that a forwarder had not heard of yet. A call
 * waits in a queue for seconds at most, and is published within seconds; longer only while Kafka is away.
 */
export const plannedWithinMs = 60_000
/** Of ids of one kind; 160 MB. What is beyond is taken for what it is without them. */
const maxIds = 10_000_000

/** Where the record of a call, or of a retry, lies. */
interface Place {
  topic: string
  partition: number
  offset: number
}

export interface ReplayFactsTerms {
  destinationId: string
  callsTopic: string
  /** Of the forwarders' calls. */
  group: string
  /** When the replay was made: what it sends itself must not change what a call counts as. */
  createdAt: number
  /** Whether what a pause held is held still: no other replay takes it. */
  isHeldBy(pauseId: string): boolean
  /** Of the destination, up to now, before the events of up to now. */
  epochs: Pick<SettingsEpochs, 'all'>
  /** Random 32 bits. */
  seed: number
}

/**
 * What the ledger and the dead letters say of one destination, folded into sets of bounded size; and by it, what a
 * delivery was. Tallies whose commit failed count as well: the same offsets were finished again, by the next owner. Their
 * union says too much only where a pause began or ended between the two, which is what one crash explains: the delivery
 * is repeated under its own id.
 */
export class ReplayFacts {
  readonly #terms: ReplayFactsTerms
  /** By `topic/partition`: records with anything held, those of which all was, and by URL those of which its part was. */
  readonly #held = new Map<string, OffsetSet>()
  readonly #heldWhole = new Map<string, OffsetSet>()
  readonly #heldOfUrl = new Map<string, OffsetSet>()
  /** By partition of the calls topic: what certainly was planned, or was not, near a change of the settings. */
  readonly #planned = new Map<string, OffsetSet>()
  readonly #notPlanned = new Map<string, OffsetSet>()
  /** By partition of the calls topic: skipped, because their user was suppressed then. */
  readonly #suppressed = new Map<string, OffsetSet>()
  /** By epoch and partition; not needed while there is one epoch. */
  readonly #finished = new Map<string, OffsetSet>()
  /** By partition of the calls topic: kept back by a tracking plan. Their dead letters are what is replayed. */
  readonly #blocked = new Map<string, OffsetSet>()
  readonly #failed: DeliveryIdSet
  readonly #taken: DeliveryIdSet

  constructor(terms: ReplayFactsTerms) {
    this.#terms = terms
    this.#failed = new DeliveryIdSet(terms.seed, maxIds)
    this.#taken = new DeliveryIdSet(terms.seed, maxIds)
  }

  get #epochs(): readonly SettingsEpoch[] {
    return this.#terms.epochs.all
  }

  /** @param appendedAt by the broker's clock, as the epochs */
  addEvent(event: DeliveryEvent, appendedAt: number): void {
    const { type, tally, topic, partition } = event
    if (type === 'tally') {
      if (tally && topic !== null && partition !== null) this.#addTally(tally, topic, partition, appendedAt)
      return
    }
    if (type !== 'disposition') return
    if (event.disposition === 'skipped' && event.reason === 'suppressed')
      this.#addRecord(this.#suppressed, event)
    if (event.disposition === 'dead_lettered' && event.reason === 'plan_violation')
      this.#addRecord(this.#blocked, event)
    if (event.destinationId !== this.#terms.destinationId) return
    const { disposition, deliveryId } = event
    if (disposition === 'delivered' && deliveryId !== null && event.at < this.#terms.createdAt)
      this.#taken.add(deliveryId)
  }

  addDeadLetter({ delivery, failedAt }: Pick<DeadLetter, 'delivery' | 'failedAt'>): void {
    const { destinationId, createdAt } = this.#terms
    if (delivery?.destinationId === destinationId && failedAt < createdAt) this.#failed.add(delivery.id)
  }

  /** Offsets of that partition, of calls or of a retry topic, that were held; null for none. */
  heldIn(topic: string, partition: number): OffsetSet | null {
    return this.#held.get(`${topic}/${partition}`) ?? null
  }

  /** Topics with anything held. */
  heldTopics(): Set<string> {
    return new Set([...this.#held.keys()].map((key) => key.slice(0, key.lastIndexOf('/'))))
  }

  /** Whether a tracking plan kept the call back: it is not sent but by its dead letter. */
  isBlocked({ partition, offset }: Place): boolean {
    return this.#blocked.get(String(partition))?.has(offset) ?? false
  }

  /** What the delivery was. @param appendedAt of the call's record */
  kindOf(
    call: AnalyticsCall,
    { deliveryId }: PlannedDestination,
    place: Place,
    appendedAt: number,
  ): ReplayKind {
    const id = deliveryId!
    if (this.#taken.has(id)) return 'delivered'
    if (this.#failed.has(id)) return 'failed'
    if (this.#wasHeld(call, id, place)) return 'held'
    // What came while a user was suppressed does not come back, unless somebody asks for all there is.
    if (this.#suppressed.get(String(place.partition))?.has(place.offset)) return 'delivered'
    return this.#wasPlanned(call, id, place, appendedAt) ? 'delivered' : 'skipped'
  }

  #wasHeld({ messageId }: AnalyticsCall, id: string, { topic, partition, offset }: Place): boolean {
    const place = `${topic}/${partition}`
    if (!this.#held.get(place)?.has(offset)) return false
    const urlId = urlIdOf({ id, messageId, destinationId: this.#terms.destinationId })
    if (urlId === null || this.#heldWhole.get(place)?.has(offset)) return true
    return this.#heldOfUrl.get(`${place}/${urlId}`)?.has(offset) ?? false
  }

  /** What became of such a record became of it as a whole, for every destination. */
  #addRecord(
    records: Map<string, OffsetSet>,
    { topic, partition, firstOffset, deliveryId }: DeliveryEvent,
  ): void {
    if (topic !== this.#terms.callsTopic || partition === null || firstOffset === null) return
    // That of one delivery: it was planned, and waited.
    if (deliveryId !== null) return
    addTo(records, String(partition), [{ start: firstOffset, end: firstOffset + 1 }])
  }

  #addTally(tally: Tally, topic: string, partition: number, appendedAt: number): void {
    const { destinationId, callsTopic, group, isHeldBy } = this.#terms
    for (const held of tally.held) {
      if (held.destinationId !== destinationId || !isHeldBy(held.pauseId)) continue
      const place = `${topic}/${partition}`
      const runs = fromPairs(held.offsets, tally.start)
      addTo(this.#held, place, runs)
      if (held.urls.length === 0) addTo(this.#heldWhole, place, runs)
      for (const { urlId, offsets } of held.urls)
        addTo(this.#heldOfUrl, `${place}/${urlId}`, fromPairs(offsets, tally.start))
    }
    if (topic !== callsTopic || tally.group !== group || this.#epochs.length < 2) return
    const runs = fromPairs(tally.finished, tally.start)
    const epochs = epochsWithin(this.#epochs, appendedAt - plannedWithinMs, appendedAt)
    if (epochs.length > 1) {
      const counts = tally.counts.find((each) => each.destinationId === destinationId)
      const planned = plannedOf(counts)
      const most = Math.max(...epochs.map((index) => this.#epochs[index]!.deliveries))
      if (planned === 0) return addTo(this.#notPlanned, String(partition), runs)
      // Those of suppressed users say nothing of the others, and are known one by one.
      const others = tally.records - suppressedOf(tally)
      if (planned >= others * most) return addTo(this.#planned, String(partition), runs)
    }
    for (const index of epochs) addTo(this.#finished, `${index}/${partition}`, runs)
  }

  /**
   * Whether it was planned under every settings that may have counted. Where that is not known it was not: it is sent
   * under its own id, by which a receiver that had it knows it.
   */
  #wasPlanned(call: AnalyticsCall, id: string, { partition, offset }: Place, appendedAt: number): boolean {
    const key = String(partition)
    if (this.#notPlanned.get(key)?.has(offset)) return false
    if (this.#planned.get(key)?.has(offset)) return true
    let epochs = this.#epochs.map((_, index) => index)
    if (epochs.length > 1) {
      epochs = epochs.filter((index) => this.#finished.get(`${index}/${partition}`)?.has(offset))
      // No tally covers it: a ledger that was lost.
      if (epochs.length === 0)
        epochs = epochsWithin(this.#epochs, appendedAt - plannedWithinMs, appendedAt + plannedWithinMs)
    }
    return epochs.every((index) => planned(call, id, this.#epochs[index]!, this.#terms.destinationId))
  }
}

function addTo(sets: Map<string, OffsetSet>, key: string, runs: readonly OffsetRun[] | null): void {
  if (runs === null) return
  let set = sets.get(key)
  if (!set) sets.set(key, (set = new OffsetSet()))
  set.add(runs)
}

/** Deliveries that a tally's records came to. */
function plannedOf(counts: DestinationTally | undefined): number {
  if (!counts) return 0
  const { delivered, retried, deferred, deadLettered, erased, held } = counts
  return delivered + retried + deferred + deadLettered + erased + held
}

/** Records that were skipped because their user was suppressed; such a record counts for no destination. */
function suppressedOf({ counts }: Tally): number {
  const ofNone = counts.find(({ destinationId }) => destinationId === null)
  return ofNone?.skipReasons.find(({ reason }) => reason === 'suppressed')?.count ?? 0
}

/** A destination that delivers to every URL now, and to any then, or the other way round, has had the call. */
function planned(
  call: AnalyticsCall,
  id: string,
  { settings }: SettingsEpoch,
  destinationId: string,
): boolean {
  const lines = (planCall(call, settings) ?? []).filter(({ reason }) => reason === null)
  if (lines.some(({ deliveryId }) => deliveryId === id)) return true
  const isOfUrl = (deliveryId: string) =>
    urlIdOf({ id: deliveryId, messageId: call.messageId, destinationId }) !== null
  return lines.some(({ deliveryId }) => isOfUrl(deliveryId!) !== isOfUrl(id))
}

/** Settings as far as they decide whether a destination gets a call. */
export type PlanningSettings = Pick<SettingsState, 'sources' | 'destinations'>

/** A time within which these did not change. */
export interface SettingsEpoch {
  /** When it began, by the broker's clock, epoch ms; -Infinity for the first one. */
  since: number
  settings: PlanningSettings
  /** The most deliveries that a call comes to for the destination. */
  deliveries: number
}

/** What of the log's history counts for one destination: neighbours that plan alike are one. */
export class SettingsEpochs {
  readonly #destinationId: string
  readonly #epochs: SettingsEpoch[] = []
  #last: string | null = null

  constructor(destinationId: string) {
    this.#destinationId = destinationId
  }

  /** The oldest first. Those that are added later only ever lengthen it. */
  get all(): readonly SettingsEpoch[] {
    return this.#epochs
  }

  /** In the order of time. @param since epoch ms */
  add(since: number, state: PlanningSettings): void {
    const destination = state.destinations.get(this.#destinationId)
    const spelled = JSON.stringify(whatCounts(destination, state))
    if (spelled === this.#last) return
    this.#last = spelled
    const destinations = new Map(destination && [[destination.id, destination]])
    const deliveries = destination?.options.deliverTo === 'every' ? destination.urls.length : 1
    this.#epochs.push({ since, settings: { sources: state.sources, destinations }, deliveries })
  }
}

function whatCounts(destination: Destination | undefined, { sources }: PlanningSettings): unknown {
  if (destination === undefined) return null
  const { enabled, sourceIds, options, urls } = destination
  return [
    enabled,
    options,
    urls.map(({ id }) => id),
    sourceIds.map((id) => [id, sources.get(id)?.enabled ?? null]),
  ]
}

/** Indexes of those that lie within two times, of which there is always one. */
export function epochsWithin(epochs: readonly SettingsEpoch[], from: number, to: number): number[] {
  const found: number[] = []
  for (let index = 0; index < epochs.length; index++) {
    const end = epochs[index + 1]?.since ?? Infinity
    if (epochs[index]!.since <= to && end > from) found.push(index)
  }
  return found
}
