import { outcomeKinds, type OutcomeKind } from '../delivery/outcome.ts'
import { dispositionLabels, type DispositionLabel } from './delivery-event.ts'
import {
  type HeldBy,
  attemptBuckets,
  type DestinationCounts,
  type DestinationTally,
  type EndpointAttempts,
  type ReasonCount,
} from './tally.ts'

const fieldOf = {
  delivered: 'delivered',
  retried: 'retried',
  deferred: 'deferred',
  dead_lettered: 'deadLettered',
  skipped: 'skipped',
  erased: 'erased',
  held: 'held',
} as const satisfies Record<DispositionLabel, keyof DestinationCounts>

/** The fields of DestinationCounts that hold counts. */
export const countFields = Object.values(fieldOf)

/** How an attempt can end: `deferred` is none. */
export type AttemptKind = Exclude<OutcomeKind, 'deferred'>
const attemptKinds = outcomeKinds.filter((kind) => kind !== 'deferred')
const kindIndex = Object.fromEntries(attemptKinds.map((kind, index) => [kind, index])) as Record<
  AttemptKind,
  number
>
const labelIndex = Object.fromEntries(dispositionLabels.map((label, index) => [label, index])) as Record<
  DispositionLabel,
  number
>

const bucketCount = attemptBuckets.length + 1
/** Of an endpoint's block: an attempt by kind and bucket; behind that, one by bucket that got a delivery delivered. */
const deliveredBase = attemptKinds.length * bucketCount
/** Codes per block, as a power of two: an endpoint's are the most. */
const blockBits = Math.ceil(Math.log2(deliveredBase + bucketCount))
const placeMask = (1 << blockBits) - 1

function bucketOf(durationMs: number): number {
  let bucket = 0
  while (bucket < attemptBuckets.length && durationMs > attemptBuckets[bucket]!) bucket++
  return bucket
}

/** What an endpoint is known by. */
interface EndpointId {
  readonly destinationId: string
  /** Of the URL. */
  readonly id: string
}

/** What the codes of one block mean. */
interface Block {
  destinationId: string | null
  /** Set where the block is an endpoint's. */
  urlId: string | null
  /** Set where it is for what became of deliveries: the code's place is the disposition. */
  reason: string | null
  /** Set where all of it are deliveries that a pause held. */
  heldBy: HeldBy | null
}

/** The first codes of what belongs to one destination. */
interface DestinationBlocks {
  readonly plain: number
  readonly byReason: Map<string, number>
  readonly byUrl: Map<string, number>
  /** By pause and URL; null until something was held. */
  held: Map<string, number> | null
}

/**
 * Numbers what a delivery or an attempt can come to, by destination, reason, URL and duration: small numbers are all
 * that the hot path keeps of a result. A delivery that was delivered at once is one number.
 */
export class ResultCodes {
  readonly #destinations = new Map<string | null, DestinationBlocks>()
  readonly #blocks: Block[] = []

  /**
   * What became of a delivery.
   * @param destinationId null for a record without one
   * @param reason of a dead letter, why it was skipped, or why it was let go out of its order
   */
  code(destinationId: string | null, label: DispositionLabel, reason: string | null = null): number {
    const blocks = this.#blocksOf(destinationId)
    const base = reason === null ? blocks.plain : this.#reasonBase(blocks, destinationId, reason)
    return base + labelIndex[label]
  }

  /** A delivery was delivered by this attempt, which counts as a success of the endpoint as well. */
  delivered(endpoint: EndpointId, durationMs: number): number {
    return this.#endpointBase(endpoint) + deliveredBase + bucketOf(durationMs)
  }

  /** A delivery was held by a pause. */
  held(heldBy: HeldBy): number {
    const { destinationId, pauseId, urlId } = heldBy
    const blocks = this.#blocksOf(destinationId)
    blocks.held ??= new Map()
    const key = urlId === null ? pauseId : `${pauseId} ${urlId}`
    let base = blocks.held.get(key)
    if (base === undefined) {
      base = this.#newBlock({ ...plainBlock(destinationId), heldBy })
      blocks.held.set(key, base)
    }
    return base + labelIndex.held
  }

  /** By which pause deliveries with this code were held; null for any other code. */
  heldBy(code: number): HeldBy | null {
    return this.#blocks[code >>> blockBits]!.heldBy
  }

  /** An attempt that did not get its delivery delivered: it failed, or another had already. */
  attempt(endpoint: EndpointId, kind: AttemptKind, durationMs: number): number {
    return this.#endpointBase(endpoint) + kindIndex[kind] * bucketCount + bucketOf(durationMs)
  }

  /** Counts by code, as in a tally: by destination, ordered by its name. */
  named(counts: ReadonlyMap<number, number>): DestinationTally[] {
    const byDestination = new Map<string | null, DestinationTally>()
    for (const [code, count] of counts) {
      const { destinationId, urlId, reason } = this.#blocks[code >>> blockBits]!
      let entry = byDestination.get(destinationId)
      if (!entry) byDestination.set(destinationId, (entry = noTally(destinationId)))
      const place = code & placeMask
      if (urlId !== null) addAttempts(entry, urlId, place, count)
      else addDisposition(entry, dispositionLabels[place]!, reason, count)
    }
    return [...byDestination.values()].sort((a, b) =>
      (a.destinationId ?? '') < (b.destinationId ?? '') ? -1 : 1,
    )
  }

  #blocksOf(destinationId: string | null): DestinationBlocks {
    let blocks = this.#destinations.get(destinationId)
    if (blocks === undefined) {
      const plain = this.#newBlock(plainBlock(destinationId))
      blocks = { plain, byReason: new Map(), byUrl: new Map(), held: null }
      this.#destinations.set(destinationId, blocks)
    }
    return blocks
  }

  #endpointBase({ destinationId, id }: EndpointId): number {
    const { byUrl } = this.#blocksOf(destinationId)
    let base = byUrl.get(id)
    if (base === undefined) {
      base = this.#newBlock({ ...plainBlock(destinationId), urlId: id })
      byUrl.set(id, base)
    }
    return base
  }

  #reasonBase({ byReason }: DestinationBlocks, destinationId: string | null, reason: string): number {
    let base = byReason.get(reason)
    if (base === undefined) {
      base = this.#newBlock({ ...plainBlock(destinationId), reason })
      byReason.set(reason, base)
    }
    return base
  }

  #newBlock(block: Block): number {
    return (this.#blocks.push(block) - 1) << blockBits
  }
}

const plainBlock = (destinationId: string | null): Block => ({
  destinationId,
  urlId: null,
  reason: null,
  heldBy: null,
})

function addDisposition(
  entry: DestinationTally,
  label: DispositionLabel,
  reason: string | null,
  count: number,
): void {
  entry[fieldOf[label]] += count
  if (reason === null) return
  if (label === 'skipped') addReason(entry.skipReasons, reason, count)
  else if (label === 'dead_lettered') addReason(entry.deadLetterReasons, reason, count)
  else if (label === 'retried' || label === 'deferred') addReason(entry.releaseReasons, reason, count)
}

function addReason(reasons: ReasonCount[], reason: string, count: number): void {
  const known = reasons.find((each) => each.reason === reason)
  if (known) known.count += count
  else reasons.push({ reason, count })
}

function addAttempts(entry: DestinationTally, urlId: string, place: number, count: number): void {
  const isDelivered = place >= deliveredBase
  if (isDelivered) entry.delivered += count
  const outcome = isDelivered ? 'success' : attemptKinds[Math.floor(place / bucketCount)]!
  const attempts = attemptsAt(entry.endpoints, urlId)
  const known = attempts.outcomes.find((each) => each.outcome === outcome)
  if (known) known.count += count
  else attempts.outcomes.push({ outcome, count })
  attempts.durations[(isDelivered ? place - deliveredBase : place) % bucketCount]! += count
}

function attemptsAt(endpoints: EndpointAttempts[], urlId: string): EndpointAttempts {
  let found = endpoints.find((endpoint) => endpoint.urlId === urlId)
  if (!found) {
    found = { urlId, outcomes: [], durations: new Array<number>(bucketCount).fill(0) }
    endpoints.push(found)
  }
  return found
}

export const noCounts = (destinationId: string | null): DestinationCounts => ({
  destinationId,
  delivered: 0,
  retried: 0,
  deferred: 0,
  deadLettered: 0,
  skipped: 0,
  erased: 0,
  held: 0,
})

/** Without reasons and attempts. */
export function onlyCounts(given: DestinationCounts): DestinationCounts {
  const counts = noCounts(given.destinationId)
  for (const field of countFields) counts[field] = given[field]
  return counts
}

export const noTally = (destinationId: string | null): DestinationTally => ({
  ...noCounts(destinationId),
  skipReasons: [],
  deadLetterReasons: [],
  releaseReasons: [],
  endpoints: [],
})
