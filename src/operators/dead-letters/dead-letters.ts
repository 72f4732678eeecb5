// Dead letters as the admin API and `--json` show them.
import {
  statusOf,
  deadLetterFilter,
  kindKey,
  kindOf,
  type DeadLetterKind,
  type DeadLetterTerms,
} from '../../core/delivery/dead-letter-filter.ts'
import type { DeadLetter, Delivery, Origin } from '../../core/delivery/delivery.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import { isoOf, isoOrNull } from '../../core/duration.ts'
import { bodyForPeople, secretsOf } from '../../core/shape/secret-holes.ts'
import { PostriderError } from '../../errors.ts'
import { shownExchange } from '../exchange.ts'
import type { StatisticsStore } from '../statistics/series.ts'

type HeaderValue = Uint8Array | string | (Uint8Array | string)[] | undefined

/** A record of a topic as it lies there. `timestamp` is the broker's, in epoch milliseconds. */
export interface StoredRecord {
  partition: number
  offset: number
  key: Uint8Array | null
  value: Uint8Array | null
  headers: Record<string, HeaderValue>
  timestamp: number
}

/** A record of the dead letter topic. */
export interface StoredDeadLetter {
  /** `<partition>-<offset>`: stable, and there for every record, a delivery's or not. */
  id: string
  record: StoredRecord
  /** Null when the record itself cannot be read. */
  deadLetter: DeadLetter | null
  /** Why it cannot be read. */
  problem: string | null
  /** Epoch milliseconds; when it was written, where that is all that is known. */
  failedAt: number
  /** The call whose user a deletion request may cover. */
  owner: ErasableCall
}

/** Null where the id is a delivery's. */
export function deadLetterPlace(id: string): { partition: number; offset: number } | null {
  const place = /^(\d{1,5})-(\d{1,15})$/.exec(id)
  return place && { partition: Number(place[1]), offset: Number(place[2]) }
}

export const noDeadLetter = (topic: string, what: string): PostriderError =>
  new PostriderError(
    'not_found',
    `${topic} holds no dead letter ${what}; \`postrider dead-letters list\` shows what it holds`,
  )

export interface DeadLetterReadOptions {
  /** Epoch milliseconds: what failed before may be left out. */
  since?: number | null
  signal?: AbortSignal
  /** Called once, before the first: about how many there are to look at. */
  onRange?: (total: number) => void
}

/** The dead letter topic. All reject with `kafka_unavailable`, `registry_unavailable` or `setup`. */
export interface DeadLetterStore {
  /** Every dead letter there is now, in order within a partition. */
  all(options?: DeadLetterReadOptions): AsyncIterable<StoredDeadLetter>
  /**
   * The dead letters of that id, oldest first: one for a `<partition>-<offset>`; for a delivery id all that the
   * delivery ever came to. Throws `not_found`.
   */
  byId(id: string, signal?: AbortSignal): Promise<StoredDeadLetter[]>
  /** Those that `pick` makes something of, the newest first. */
  newest<T>(options: NewestOptions<T>): Promise<{ deadLetters: T[]; next: PageStart | null }>
}

/** By partition, the offset behind those that are still to come. */
export type PageStart = ReadonlyMap<number, number>

export interface NewestOptions<T> {
  limit: number
  /** `next` of the page before; null for the first one. */
  before: PageStart | null
  /** Epoch milliseconds: what failed before may be left out. */
  since: number | null
  pick: (stored: StoredDeadLetter) => T | null
  signal?: AbortSignal
}

export function summaryOf({ id, deadLetter, problem, failedAt }: StoredDeadLetter): object {
  const delivery = deadLetter?.delivery
  return {
    id,
    failedAt: isoOf(failedAt),
    reason: deadLetter?.reason ?? null,
    detail: deadLetter ? deadLetter.detail : problem,
    deliveryId: delivery?.id ?? null,
    messageId: delivery?.messageId ?? null,
    sourceId: delivery?.sourceId ?? null,
    destinationId: delivery?.destinationId ?? null,
    type: delivery?.type ?? null,
    attempts: delivery?.attempts ?? null,
    status: statusOf(deadLetter),
    origin: deadLetter && placeOf(deadLetter.origin),
  }
}

/** Everything, with bytes as `{text}` where they are UTF-8 and as `{base64}` where they are not. */
export function jsonOf(stored: StoredDeadLetter): object {
  const { deadLetter, record } = stored
  if (!deadLetter) return { ...summaryOf(stored), value: record.value && jsonBytes(record.value) }
  const { delivery, raw, rawKey, failedAt, origin, from, ...rest } = deadLetter
  return {
    id: stored.id,
    failedAt: isoOf(failedAt),
    ...rest,
    origin: placeOf(origin),
    from: from && placeOf(from),
    delivery: delivery && {
      ...delivery,
      origin: placeOf(delivery.origin),
      body: shownBody(delivery),
      firstAttemptAt: isoOrNull(delivery.firstAttemptAt),
      firstScheduledAt: isoOrNull(delivery.firstScheduledAt),
      notBefore: isoOrNull(delivery.notBefore),
      outcomes: delivery.outcomes.map((outcome) => ({ ...outcome, at: isoOf(outcome.at) })),
      lastResponse: delivery.lastResponse && {
        ...delivery.lastResponse,
        at: isoOf(delivery.lastResponse.at),
        body: jsonBytes(delivery.lastResponse.body),
      },
      lastExchange: delivery.lastExchange && {
        endpointId: delivery.lastExchange.endpointId,
        at: isoOf(delivery.lastExchange.at),
        ...shownExchange(delivery.lastExchange),
      },
      key: record.key && jsonBytes(record.key),
    },
    raw: raw && jsonBytes(raw),
    rawKey: rawKey && jsonBytes(rawKey),
  }
}

/** With the names of the secrets that it is sent with. */
function shownBody({ body, filled }: Delivery): object {
  const text = secretsOf(filled).length === 0 ? null : textOf(body)
  return text === null ? jsonBytes(body) : { text: bodyForPeople(text) }
}

const placeOf = (origin: Origin): object => ({ ...origin, appendedAt: isoOrNull(origin.appendedAt) })

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Null for what is not UTF-8. */
export function textOf(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

/** `{text}` where they are UTF-8, else `{base64}`. */
export function jsonBytes(bytes: Uint8Array): object {
  const text = textOf(bytes)
  return text === null ? { base64: Buffer.from(bytes).toString('base64') } : { text }
}

/** The users erased by deletion requests, as far as folded. */
export interface KnownErasures {
  covers(call: ErasableCall): boolean
}

/**
 * The same dead letters without those that a deletion request covers: they are as good as gone, and are neither
 * listed nor shown nor replayed (docs/privacy.md).
 *
 * @param erasures asked before each reading: resolves once all erasures are folded that there are at the call
 */
export function withoutErased(
  store: DeadLetterStore,
  erasures: (signal?: AbortSignal) => Promise<KnownErasures>,
): DeadLetterStore {
  return {
    async *all(options = {}) {
      const known = await erasures(options.signal)
      for await (const stored of store.all(options)) if (!known.covers(stored.owner)) yield stored
    },
    async byId(id, signal) {
      const [known, found] = [await erasures(signal), await store.byId(id, signal)]
      const left = found.filter((stored: StoredDeadLetter) => !known.covers(stored.owner))
      if (left.length > 0) return left
      throw new PostriderError('not_found', `dead letter ${id} is of a user who was deleted: it was erased`)
    },
    async newest(options) {
      const known = await erasures(options.signal)
      return store.newest({
        ...options,
        pick: (stored) => (known.covers(stored.owner) ? null : options.pick(stored)),
      })
    },
  }
}

/** Dead letters of one kind. Times are epoch milliseconds. */
export interface DeadLetterGroup extends DeadLetterKind {
  count: number
  /** Of them, those that are none any more; null where that was not asked. */
  settled: number | null
  firstAt: number
  lastAt: number
}

export interface GroupedDeadLetters {
  /** The largest first. */
  groups: DeadLetterGroup[]
  /** Dead letters in all groups. */
  count: number
  /** Those of further kinds, of which there were too many to count each. */
  others: number
}

/** Kinds that are counted apart: what a person looks at, and a bound of memory. */
const maxGroups = 1_000

/** Whether a delivery that failed then is no dead letter any more. */
type IsSettled = (deliveryId: string, failedAt: number) => boolean

/** What failed of late may not be counted yet. */
const countedWithinMs = 10_000

/** Of what the statistics do not know it is not said. */
export function settledBy(
  store: Pick<StatisticsStore, 'reach' | 'deadLettersSince' | 'isDeadLetter'>,
): IsSettled {
  const { asOf } = store.reach()
  const since = store.deadLettersSince()
  return (deliveryId, failedAt) =>
    since !== null &&
    asOf !== null &&
    failedAt >= since &&
    failedAt < asOf - countedWithinMs &&
    !store.isDeadLetter(deliveryId)
}

/** Counts dead letters by kind, in one pass. `progress` learns how many were looked at, of about how many. */
export async function groupDeadLetters(
  store: Pick<DeadLetterStore, 'all'>,
  terms: DeadLetterTerms,
  progress: (looked: number, total: number) => void,
  signal: AbortSignal,
  isSettled: IsSettled | null = null,
): Promise<GroupedDeadLetters> {
  const passes = deadLetterFilter(terms)
  const groups = new Map<string, DeadLetterGroup>()
  let [looked, total, count, others] = [0, 0, 0, 0]
  const onRange = (found: number) => progress(0, (total = found))
  for await (const stored of store.all({ since: terms.since, signal, onRange })) {
    progress(++looked, total)
    if (!passes(stored)) continue
    count++
    const { failedAt } = stored
    const kind = kindOf(stored)
    const key = kindKey(kind)
    const deliveryId = stored.deadLetter?.delivery?.id
    const done = isSettled && Number(deliveryId !== undefined && isSettled(deliveryId, failedAt))
    const group = groups.get(key)
    if (group) {
      group.count++
      if (done !== null) group.settled = (group.settled ?? 0) + done
      group.firstAt = Math.min(group.firstAt, failedAt)
      group.lastAt = Math.max(group.lastAt, failedAt)
    } else if (groups.size < maxGroups)
      groups.set(key, { ...kind, count: 1, settled: done, firstAt: failedAt, lastAt: failedAt })
    else others++
  }
  const sorted = [...groups.values()].sort((a, b) => b.count - a.count || b.lastAt - a.lastAt)
  return { groups: sorted, count, others }
}

/** As the admin API and `--json` show it. */
export const groupJson = ({ firstAt, lastAt, settled, ...group }: DeadLetterGroup): object => ({
  ...group,
  ...(settled !== null && { settled }),
  firstAt: isoOf(firstAt),
  lastAt: isoOf(lastAt),
})
