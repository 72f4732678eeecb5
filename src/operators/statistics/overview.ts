import { isoOrNull } from '../../core/duration.ts'
import type { Destination, SettingsState } from '../../core/settings/settings.ts'
import {
  healthOf,
  healthRank,
  healthWords,
  isAnythingIn,
  isWell,
  judgedAtMostMs,
  judgedMs,
  type Health,
  type HealthWord,
} from '../../core/statistics/health.ts'
import { judgedOutcomesOf, urlOutcomesOf } from '../../core/statistics/judged-outcomes.ts'
import { addRollup, spanMs, type RollupCounts } from '../../core/statistics/rollup.ts'
import type { DestinationNow } from '../../core/statistics/waiting-reason.ts'
import {
  attemptFiguresOf,
  deliveryCountsOf,
  destinationFiguresOf,
  sourceFiguresOf,
} from '../../core/statistics/views.ts'
import {
  lagOf,
  overdueOf,
  heardUntil,
  liveEndpoints,
  livePartitions,
  processStateOf,
  readingOf,
  timesOf,
  worstBreakerOf,
  type UrlPacing,
  type WithoutToken,
} from './processes.ts'
import { Kept } from '../kept.ts'
import { lastMinutes, sumsBetween, type StatisticsStore } from './series.ts'
import type { WaitingCounts } from './waiting.ts'

/** What the overview is made from. Times are epoch ms. */
export interface OverviewInput {
  store: StatisticsStore
  settings: Pick<SettingsState, 'sources' | 'destinations'>
  callsTopic: string
  now: number
  windowMs: number
}

/** Destinations and sources of the overview: it is as long with 100,000 of them as with 100. */
export const maxOverviewRows = 20

/** How one destination is, and what was counted of it. What is shown is made of it, for those only that are shown. */
export interface Standing {
  destination: Destination
  health: DestinationHealth
  /** By URL. */
  live: ReadonlyMap<string, UrlPacing>
  counts: RollupCounts
}

interface Standings {
  all: Standing[]
  /** The counts by subject that they were taken from. */
  sums: Map<string, RollupCounts>
}

const kept = new Kept<Standings>()

/**
 * In the order of their creation.
 *
 * @param ids of these; unless given, of all destinations, as they were a moment ago where there are very many
 */
export function standingsOf(input: OverviewInput, ids: readonly string[] | null = null): Standings {
  if (ids !== null) return standingsNow(input, ids)
  const { store, settings, windowMs, now } = input
  return kept.get({ by: store, of: settings.destinations, about: String(windowMs), now }, () =>
    standingsNow(input, null),
  )
}

function standingsNow(
  { store, settings, callsTopic, now, windowMs }: OverviewInput,
  ids: readonly string[] | null,
): Standings {
  const endpoints = liveEndpoints(store.processes(), heardUntil(store, now))
  const destinations =
    ids === null
      ? [...settings.destinations.values()]
      : ids.flatMap((id) => settings.destinations.get(id) ?? [])
  const healths = healthsOf({ store, callsTopic, now }, destinations, endpoints)
  const sums = sumsBetween(store, 'destination', lastMinutes(windowMs, now), ids)
  const all = destinations.map((destination): Standing => {
    const { id } = destination
    const live = endpoints.get(id) ?? noPacing
    return { destination, health: healths.get(id)!, live, counts: sums.get(id) ?? noCounts }
  })
  return { all, sums }
}

const noCounts: RollupCounts = {}

/** By what destinations can be sorted. */
export const destinationOrders = [
  'worst',
  'name',
  'delivered',
  'success',
  'p95',
  'queued',
  'waiting',
  'dead_letters',
] as const
export type DestinationOrder = (typeof destinationOrders)[number]

/**
 * `worst`: by health, then by dead letters, then by the share of attempts that fail. Of figures, the worst or the most come
 * first.
 *
 * @param waiting how much waits for each in retry tiers; null: not known
 */
export function inOrder(
  standings: readonly Standing[],
  order: DestinationOrder,
  waiting: WaitingCounts | null = null,
): Standing[] {
  if (order === 'name')
    return standings.toSorted(
      ({ destination: a }, { destination: b }) => compared(a.name, b.name) || compared(a.id, b.id),
    )
  return standings
    .map((standing) => ({ standing, ranks: ranksOf[order](standing, waiting) }))
    .sort(
      (a, b) =>
        a.ranks.reduce((found, rank, index) => found || rank - b.ranks[index]!, 0) ||
        compared(a.standing.destination.id, b.standing.destination.id),
    )
    .map(({ standing }) => standing)
}

const compared = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1)

/** The lowest comes first. */
const ranksOf: Record<
  Exclude<DestinationOrder, 'name'>,
  (standing: Standing, waiting: WaitingCounts | null) => number[]
> = {
  worst({ health, counts }) {
    const { attempts, succeeded } = judgedOutcomesOf(counts)
    const failing = attempts === 0 ? 0 : 1 - succeeded / attempts
    return [healthRank(health.all), -(counts.deadLettered ?? 0), -failing]
  },
  delivered: ({ counts }) => [-(counts.delivered ?? 0)],
  success({ counts }) {
    const { attempts, succeeded } = judgedOutcomesOf(counts)
    return [attempts === 0 ? 2 : succeeded / attempts]
  },
  p95: ({ counts }) => [-(attemptsOf(counts).p95Ms ?? -1)],
  queued: ({ live }) => [-sumOf(live, 'queued')],
  waiting: ({ destination: { id } }, waiting) => [-(waiting?.get(id) ?? 0)],
  dead_letters: ({ counts }) => [-(counts.deadLettered ?? 0)],
}

const noAttempts = attemptFiguresOf(noCounts)
const attemptsOf = (counts: RollupCounts) => (counts === noCounts ? noAttempts : attemptFiguresOf(counts))

export function overviewOf(input: OverviewInput) {
  const { store, settings, callsTopic, now } = input
  const period = lastMinutes(input.windowMs, now)
  const { asOf, since } = store.reach()
  const rate = rateOf(input)
  const processes = store.processes()
  const { all, sums } = standingsOf(input)
  const worst = inOrder(all, 'worst').slice(0, maxOverviewRows)

  const total: RollupCounts = {}
  for (const counts of sums.values()) addRollup(total, counts)
  const { attempts, failed, successRate } = attemptFiguresOf(total)
  const counted = deliveryCountsOf(total)

  const collected = sumsBetween(store, 'source', period)
  const figures = [...collected].map(([id, counts]) => ({ id, ...sourceFiguresOf(counts) }))
  const accepted = figures.reduce((sum, source) => sum + source.accepted, 0)
  const quiet = [...settings.sources.keys()].filter((id) => !collected.has(id))
  const sources = figures.toSorted((a, b) => b.refused - a.refused || b.accepted - a.accepted)
  for (const id of quiet.slice(0, maxOverviewRows)) sources.push({ id, ...sourceFiguresOf(noCounts) })

  const byHealth = Object.fromEntries(healthWords.map((word) => [word, 0])) as Record<HealthWord, number>
  for (const { health } of all) byHealth[health.all.word]++

  const heard = heardUntil(store, now)
  const partitions = livePartitions(processes, heard)
  const [calls, tiers] = [true, false].map((ofCalls) =>
    lagOf(partitions.filter(({ topic }) => (topic === callsTopic) === ofCalls)),
  )
  const states = processes.map((seen) => processStateOf(seen, heard))
  return {
    from: new Date(period.from).toISOString(),
    asOf: isoOrNull(asOf),
    knownSince: isoOrNull(since),
    totals: {
      accepted,
      ...counted,
      attempts,
      failed,
      successRate,
      acceptedPerSecond: rate(accepted),
      plannedPerSecond: rate(counted.planned),
      deliveredPerSecond: rate(counted.delivered),
      attemptsPerSecond: rate(attempts),
    },
    withoutDestination: deliveryCountsOf(sums.get('') ?? noCounts),
    lag: calls!,
    waitingInTiers: tiers!,
    retriesOverdueMs: overdueOf(partitions.filter(({ topic }) => topic !== callsTopic)),
    processes: {
      live: states.filter((state) => state === 'live').length,
      gone: states.filter((state) => state === 'gone').length,
    },
    byHealth,
    destinations: worst.map((standing) => summaryOf(standing, rate)),
    destinationsOmitted: all.length - worst.length,
    sources: sources.slice(0, maxOverviewRows).map(({ id, ...source }) => {
      const known = settings.sources.get(id)
      return {
        id,
        name: known?.name ?? null,
        enabled: known?.enabled ?? null,
        ...source,
        acceptedPerSecond: rate(source.accepted),
      }
    }),
    sourcesOmitted: Math.max(0, figures.length + quiet.length - maxOverviewRows),
  }
}

export type Overview = ReturnType<typeof overviewOf>

/** A second's share of a count of the period. What is not known is no time without calls. */
function rateOf({ store, now, windowMs }: Pick<OverviewInput, 'store' | 'now' | 'windowMs'>) {
  const { from } = lastMinutes(windowMs, now)
  const { asOf, since } = store.reach()
  const knownFrom = Math.max(from, since ?? from)
  const seconds = Math.max(10, (Math.min(asOf ?? now, now) - knownFrom) / 1_000)
  return (count: number): number => Math.round((count / seconds) * 100) / 100
}

type Rate = ReturnType<typeof rateOf>

/** A destination as the overview has it: as long whatever its URLs are. */
function summaryOf({ destination, health, live, counts }: Standing, rate: Rate) {
  const { id, name, enabled, pause, urls } = destination
  const { attempts, failed, successRate, p50Ms, p95Ms, p99Ms } = attemptsOf(counts)
  const counted = deliveryCountsOf(counts)
  return {
    id,
    name,
    enabled,
    health: health.all,
    pause: shownPause(pause),
    ...counted,
    ...{ attempts, failed, successRate, p50Ms, p95Ms, p99Ms },
    deliveredPerSecond: rate(counted.delivered),
    attemptsPerSecond: rate(attempts),
    inFlight: sumOf(live, 'inFlight'),
    queued: sumOf(live, 'queued'),
    breaker: worstBreakerOf(urls.flatMap((url) => live.get(url.id)?.breaker ?? [])),
  }
}

const shownPause = (pause: Destination['pause']) =>
  pause && { since: isoOrNull(pause.since)!, until: isoOrNull(pause.until) }

/** Destinations with their URLs and, where they are asked for, their last 24 hours. */
export function destinationOverviews(
  input: OverviewInput,
  standings: readonly Standing[],
  { hours, waiting }: { hours: boolean; waiting: WaitingCounts | null },
) {
  const { store, now } = input
  const rate = rateOf(input)
  return standings.map((standing) => {
    const { destination, counts } = standing
    const { breaker: _, ...summary } = summaryOf(standing, rate)
    const { urls, ...figures } = destinationFiguresOf(counts)
    return {
      ...summary,
      ...figures,
      waiting: waiting && (waiting.get(destination.id) ?? 0),
      urls: destination.urls.map((url) => {
        const {
          attempts = 0,
          failed = 0,
          successRate = null,
          p50Ms = null,
          p99Ms = null,
        } = urls.find(({ urlId }) => urlId === url.id) ?? {}
        return {
          ...urlStateOf(standing, url, store),
          ...{ attempts, failed, successRate, p50Ms, p99Ms },
        }
      }),
      ...(hours && { hours: lastHours(store, destination.id, now) }),
    }
  })
}

export type DestinationOverview = ReturnType<typeof destinationOverviews>[number]

/** How a URL is now. */
export function urlStateOf(
  { destination, health, live }: Pick<Standing, 'destination' | 'health' | 'live'>,
  { id: urlId, url, goneAt }: Destination['urls'][number],
  store: StatisticsStore,
) {
  const state = live.get(urlId) ?? unknownEndpoint
  const urlHealth = health.ofUrl(urlId)
  return {
    urlId,
    url,
    gone: goneAt !== null,
    goneAt: isoOrNull(goneAt),
    health: urlHealth,
    ...state,
    ...timesOf(state),
    lastFailure: isFailing(urlHealth, state) ? lastFailure(store, destination.id, urlId) : null,
  }
}

/** Of a URL that no live forwarder has sent to yet. */
const unknownEndpoint = {
  limit: null,
  inFlight: 0,
  queued: 0,
  breaker: null,
  pausedUntil: null,
  downSince: null,
  lastSuccessAt: null,
  withoutToken: null,
}

const noPacing: ReadonlyMap<string, UrlPacing> = new Map()

export interface DestinationHealth {
  all: Health
  /** By the same rules. */
  ofUrl(urlId: string): Health
  /** Its URLs share their tokens. */
  withoutToken: WithoutToken | null
}

/** How each of these destinations is now, by id, whatever period is asked for. */
export function healthsOf(
  { store, callsTopic, now }: Pick<OverviewInput, 'store' | 'callsTopic' | 'now'>,
  destinations: readonly Destination[],
  endpoints = liveEndpoints(store.processes(), heardUntil(store, now)),
): Map<string, DestinationHealth> {
  const reading = readingOf(store.processes(), { callsTopic, asOf: store.reach().asOf, now })
  const ids = destinations.map(({ id }) => id)
  const [judged, atMost] = [judgedMs, judgedAtMostMs].map((windowMs) =>
    sumsBetween(store, 'destination', lastMinutes(windowMs, now), ids),
  )
  return new Map(
    destinations.map(({ id, enabled, pause, urls }) => {
      const live = endpoints.get(id) ?? noPacing
      const newest = judged!.get(id) ?? {}
      const counts = isAnythingIn(judgedOutcomesOf(newest)) ? newest : (atMost!.get(id) ?? {})
      const facts = { enabled, isPaused: pause !== null, reading, now }
      const paced = urls.map(({ id: urlId, goneAt }) => {
        const { breaker, pausedUntil, withoutToken } = live.get(urlId) ?? unknownEndpoint
        return {
          ...{ urlId, isGone: goneAt !== null, breaker, pausedUntil },
          isWithoutToken: withoutToken !== null,
        }
      })
      const all = healthOf({ ...facts, urls: paced, recent: judgedOutcomesOf(counts) })
      const ofUrl = (urlId: string) => {
        const url = paced.filter((each) => each.urlId === urlId)
        return healthOf({ ...facts, urls: url, recent: urlOutcomesOf(counts, urlId) })
      }
      const withoutToken = [...live.values()].find((url) => url.withoutToken)?.withoutToken ?? null
      return [id, { all, ofUrl, withoutToken }]
    }),
  )
}

const sumOf = (live: ReadonlyMap<string, UrlPacing>, field: 'inFlight' | 'queued'): number =>
  [...live.values()].reduce((sum, endpoint) => sum + endpoint[field], 0)

const isFailing = ({ word }: Health, { breaker }: { breaker: string | null }): boolean =>
  !isWell({ word }) || (breaker !== null && breaker !== 'closed')

/** How each destination is now, as far as that keeps calls waiting; by id. */
export function destinationsNow(
  given: Pick<OverviewInput, 'store' | 'callsTopic' | 'now'>,
  destinations: readonly Destination[],
): Map<string, DestinationNow> {
  const { store, now } = given
  const endpoints = liveEndpoints(store.processes(), heardUntil(store, now))
  const healths = healthsOf(given, destinations, endpoints)
  return new Map(
    destinations.map(({ id, urls }) => {
      const health = healths.get(id)!
      const paced = urls.map(({ id: urlId, goneAt }) => {
        const state = endpoints.get(id)?.get(urlId) ?? unknownEndpoint
        const { breaker, downSince, pausedUntil, withoutToken } = state
        return {
          ...{ urlId, isGone: goneAt !== null, breaker, downSince, pausedUntil },
          isWithoutToken: withoutToken !== null,
          lastFailure: isFailing(health.ofUrl(urlId), state) ? lastFailure(store, id, urlId) : null,
        }
      })
      return [id, { health: health.all, urls: paced }]
    }),
  )
}

/** With LEDGER=all successes are listed too: no more are looked through. */
const attemptsLooked = 50

/** The newest failed attempt at a URL. */
function lastFailure(store: StatisticsStore, destinationId: string, urlId: string) {
  const anything = { outcome: null, status: null, since: null, until: null, messageIds: null }
  const { attempts } = store.attempts({ destinationId, urlId, ...anything }, null, attemptsLooked)
  const found = attempts.find(({ outcome }) => outcome !== 'success')
  if (!found) return null
  const { at, outcome, status, detail } = found
  return { at: new Date(at).toISOString(), outcome, status, detail }
}

const hoursShown = 24

/** The hours of a destination that have counts, the oldest first. */
function lastHours(store: StatisticsStore, id: string, now: number) {
  const to = Math.floor(now / spanMs.hour) * spanMs.hour + spanMs.hour
  const period = { span: 'hour', from: to - hoursShown * spanMs.hour, to } as const
  return store
    .series({ kind: 'destination', id }, period)
    .map(({ at, counts }) => ({ at: new Date(at).toISOString(), ...hourOf(counts) }))
}

function hourOf(counts: RollupCounts) {
  const { delivered = 0, deadLettered = 0 } = counts
  return { delivered, failed: attemptFiguresOf(counts).failed, deadLettered }
}
