import type { SeenProcess } from '../../core/statistics/rollup-fold.ts'
import type { HeartbeatEndpoint, HeartbeatPartition } from '../../core/ledger/heartbeat.ts'
import { isoOrNull } from '../../core/duration.ts'
import type { Reading } from '../../core/statistics/health.ts'
import type { StatisticsStore } from './series.ts'

/** `gone`: its heartbeats ceased, and it did not say that it was stopped. */
export type ProcessState = 'live' | 'stopped' | 'gone'

/** Heartbeats that may be missing. */
const missedBeats = 3

/**
 * Until when processes could be heard, epoch ms: who was not heard while the ledger could not be read has not ceased.
 * All that follows judges by then.
 */
export const heardUntil = (store: Pick<StatisticsStore, 'reach'>, now: number): number =>
  Math.min(now, store.reach().asOf ?? now)

export function processStateOf({ heartbeat, seenAt }: SeenProcess, heardUntil: number): ProcessState {
  if (heartbeat.isLast) return 'stopped'
  return heardUntil - seenAt > heartbeat.intervalMs * missedBeats ? 'gone' : 'live'
}

/** One URL over all processes that send to it. */
/** Here its limit is what may be in flight on average: below one where it sends in some seconds only. */
export interface UrlPacing extends Omit<
  HeartbeatEndpoint,
  'destinationId' | 'urlId' | 'lastFailure' | 'turns'
> {
  withoutToken: WithoutToken | null
}

/** No OAuth2 token is to be had for the requests of a URL: since when, epoch ms, and why, in one line. */
export interface WithoutToken {
  since: number
  detail: string | null
}

const breakersByTrouble = ['closed', 'ramp', 'half_open', 'paused', 'open'] as const

/** What needs somebody most; null of none. */
export const worstBreakerOf = (breakers: readonly UrlPacing['breaker'][]): UrlPacing['breaker'] | null =>
  breakersByTrouble.findLast((breaker) => breakers.includes(breaker)) ?? null

/** By destination, then by URL. */
export function liveEndpoints(
  processes: readonly SeenProcess[],
  heardUntil: number,
): Map<string, Map<string, UrlPacing>> {
  const found = new Map<string, Map<string, UrlPacing>>()
  for (const seen of processes) {
    if (processStateOf(seen, heardUntil) !== 'live') continue
    for (const { destinationId, urlId, lastFailure, turns, ...rest } of seen.heartbeat.endpoints) {
      const paced = { ...rest, limit: rest.limit * turns }
      const state = { ...paced, withoutToken: withoutTokenOf(paced, lastFailure) }
      let urls = found.get(destinationId)
      if (!urls) found.set(destinationId, (urls = new Map()))
      const before = urls.get(urlId)
      urls.set(urlId, before ? joined(before, state) : state)
    }
  }
  return found
}

function joined(one: UrlPacing, other: UrlPacing): UrlPacing {
  return {
    limit: one.limit + other.limit,
    inFlight: one.inFlight + other.inFlight,
    queued: one.queued + other.queued,
    breaker: worstBreakerOf([one.breaker, other.breaker])!,
    pausedUntil: latest(one.pausedUntil, other.pausedUntil),
    downSince:
      one.downSince === null || other.downSince === null
        ? (one.downSince ?? other.downSince)
        : Math.min(one.downSince, other.downSince),
    lastSuccessAt: latest(one.lastSuccessAt, other.lastSuccessAt),
    withoutToken:
      one.withoutToken === null || other.withoutToken === null
        ? (one.withoutToken ?? other.withoutToken)
        : one.withoutToken.since <= other.withoutToken.since
          ? one.withoutToken
          : other.withoutToken,
  }
}

const withoutTokenOf = (
  { downSince }: Pick<HeartbeatEndpoint, 'downSince'>,
  lastFailure: HeartbeatEndpoint['lastFailure'],
): WithoutToken | null =>
  downSince !== null && lastFailure?.outcome === 'no_token'
    ? { since: downSince, detail: lastFailure.detail }
    : null

const latest = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.max(one, other)

/** Of each partition that a live process reads, as the newest heartbeat has it. */
export function livePartitions(processes: readonly SeenProcess[], heardUntil: number): HeartbeatPartition[] {
  const found = new Map<string, HeartbeatPartition>()
  const live = processes.filter((seen) => processStateOf(seen, heardUntil) === 'live')
  for (const { heartbeat } of live.toSorted((a, b) => a.seenAt - b.seenAt))
    for (const each of heartbeat.partitions) found.set(`${each.topic}/${each.partition}`, each)
  return [...found.values()]
}

/** How long others have to take over the partitions of a process that is stopped, and to say so. */
const takenOverMs = 30_000

/** Partitions that nobody reads who lives, but that a process read which ended within the day. */
export function unreadPartitions(
  processes: readonly SeenProcess[],
  heardUntil: number,
): { partition: HeartbeatPartition; reader: SeenProcess }[] {
  const keyOf = ({ topic, partition }: HeartbeatPartition) => `${topic}/${partition}`
  const read = new Set(livePartitions(processes, heardUntil).map(keyOf))
  const found = new Map<string, { partition: HeartbeatPartition; reader: SeenProcess }>()
  for (const reader of processes.toSorted((a, b) => a.seenAt - b.seenAt)) {
    const isLive = processStateOf(reader, heardUntil) === 'live'
    if (isLive || heardUntil - reader.seenAt <= takenOverMs) continue
    for (const partition of reader.heartbeat.partitions)
      if (!read.has(keyOf(partition))) found.set(keyOf(partition), { partition, reader })
  }
  return [...found.values()]
}

/** Whether a process with this part lives. */
export const hasLive = (processes: readonly SeenProcess[], role: string, heardUntil: number): boolean =>
  processes.some((seen) => seen.heartbeat.roles.includes(role) && processStateOf(seen, heardUntil) === 'live')

/** A ledger that was not read for so long says nothing of now. */
const staleMs = 60_000

/** @param asOf of the statistics */
export function readingOf(
  processes: readonly SeenProcess[],
  { callsTopic, asOf, now }: { callsTopic: string; asOf: number | null; now: number },
): Reading {
  if (asOf === null || now - asOf > staleMs) return 'unknown'
  const heardUntil = Math.min(now, asOf)
  if (!hasLive(processes, 'forwarder', heardUntil)) return 'no_forwarder'
  const live = livePartitions(processes, heardUntil)
  if (!live.some(({ topic }) => topic === callsTopic)) return 'nothing'
  return unreadPartitions(processes, heardUntil).length > 0 ? 'some' : 'all'
}

/** Null where none is known. */
export function lagOf(partitions: readonly HeartbeatPartition[]): number | null {
  const known = partitions.flatMap(({ lag }) => lag ?? [])
  return known.length === 0 ? null : known.reduce((sum, lag) => sum + lag, 0)
}

/** The times of a URL's state, as the API has them. */
export function timesOf({
  pausedUntil,
  downSince,
  lastSuccessAt,
  withoutToken,
}: Pick<UrlPacing, 'pausedUntil' | 'downSince' | 'lastSuccessAt' | 'withoutToken'>) {
  return {
    pausedUntil: isoOrNull(pausedUntil),
    downSince: isoOrNull(downSince),
    lastSuccessAt: isoOrNull(lastSuccessAt),
    withoutToken: withoutToken && shownWithoutToken(withoutToken),
  }
}

export const shownWithoutToken = ({ since, detail }: WithoutToken) => ({
  since: new Date(since).toISOString(),
  detail,
})

/** The longest of any; null where none is known. */
export function overdueOf(partitions: readonly HeartbeatPartition[]): number | null {
  const known = partitions.flatMap(({ overdueMs }) => overdueMs ?? [])
  return known.length === 0 ? null : Math.max(...known)
}

/** As the API shows processes: those that live first. */
export function processViews(processes: readonly SeenProcess[], heardUntil: number) {
  const iso = (at: number) => new Date(at).toISOString()
  const order: ProcessState[] = ['live', 'gone', 'stopped']
  return processes
    .map((seen) => {
      const { heartbeat, seenAt } = seen
      const { instance, roles, version, host, pid, startedAt, intervalMs, requestsInFlight } = heartbeat
      const { partitions, endpoints, endpointsOmitted } = heartbeat
      return {
        instance,
        state: processStateOf(seen, heardUntil),
        roles,
        version,
        host,
        pid,
        startedAt: iso(startedAt),
        seenAt: iso(seenAt),
        heartbeatSeconds: intervalMs / 1_000,
        requestsInFlight,
        partitions,
        endpoints: endpoints.map(({ lastFailure, turns, ...state }) => ({
          ...state,
          limit: state.limit * turns,
          ...timesOf({ ...state, withoutToken: withoutTokenOf(state, lastFailure) }),
        })),
        endpointsOmitted,
      }
    })
    .sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || (a.startedAt < b.startedAt ? -1 : 1))
}

export type ProcessView = ReturnType<typeof processViews>[number]
