import { isoOrNull } from '../../core/duration.ts'
import type { Destination, SettingsState } from '../../core/settings/settings.ts'
import {
  healthOf,
  isAnythingIn,
  isWell,
  judgedAtMostMs,
  judgedMs,
  type Health,
} from '../../core/statistics/health.ts'
import { judgedOutcomesOf, urlOutcomesOf } from '../../core/statistics/judged-outcomes.ts'
import { spanMs, type RollupCounts } from '../../core/statistics/rollup.ts'
import type { DestinationNow } from '../../core/statistics/waiting-reason.ts'
import {
  attemptFiguresOf,
  deliveryCountsOf,
  deliveryFields,
  destinationFiguresOf,
  sourceFiguresOf,
} from '../../core/statistics/views.ts'
import {
  lagOf,
  overdueOf,
  liveEndpoints,
  livePartitions,
  processStateOf,
  readingOf,
  timesOf,
  type UrlPacing,
  type WithoutToken,
} from './processes.ts'
import { lastMinutes, sumsBetween, type StatisticsStore } from './series.ts'

/** What the overview is made from. Times are epoch ms. */
export interface OverviewInput {
  store: StatisticsStore
  settings: Pick<SettingsState, 'sources' | 'destinations'>
  callsTopic: string
  now: number
  windowMs: number
  /** Whether each destination has its last 24 hours. */
  hours: boolean
}

const hoursShown = 24

export function overviewOf({ store, settings, callsTopic, now, windowMs, hours }: OverviewInput) {
  const period = lastMinutes(windowMs, now)
  const { asOf, since } = store.reach()
  // What is not known is no time without calls.
  const knownFrom = Math.max(period.from, since ?? period.from)
  const seconds = Math.max(10, (Math.min(asOf ?? now, now) - knownFrom) / 1_000)
  const rate = (count: number) => Math.round((count / seconds) * 100) / 100
  const processes = store.processes()
  const endpoints = liveEndpoints(processes, now)
  const healths = healthsOf({ store, callsTopic, now }, [...settings.destinations.values()], endpoints)
  const sums = sumsBetween(store, 'destination', period)
  const collected = sumsBetween(store, 'source', period)

  const destinations = [...settings.destinations.values()].map((destination) => {
    const { id, name, enabled, pause, urls } = destination
    const live = endpoints.get(id) ?? noPacing
    const health = healths.get(id)!
    const { urls: counted, ...figures } = destinationFiguresOf(sums.get(id) ?? {})
    return {
      id,
      name,
      enabled,
      health: health.all,
      pause: pause && { since: isoOrNull(pause.since)!, until: isoOrNull(pause.until) },
      ...figures,
      deliveredPerSecond: rate(figures.delivered),
      attemptsPerSecond: rate(figures.attempts),
      inFlight: sumOf(live, 'inFlight'),
      queued: sumOf(live, 'queued'),
      urls: urls.map(({ id: urlId, url, goneAt }) => {
        const state = live.get(urlId) ?? unknownEndpoint
        const {
          attempts = 0,
          failed = 0,
          successRate = null,
          p50Ms = null,
          p99Ms = null,
        } = counted.find((each) => each.urlId === urlId) ?? {}
        const figures = { attempts, failed, successRate, p50Ms, p99Ms }
        const urlHealth = health.urls.get(urlId)!
        return {
          urlId,
          url,
          gone: goneAt !== null,
          goneAt: isoOrNull(goneAt),
          health: urlHealth,
          ...figures,
          ...state,
          ...timesOf(state),
          lastFailure: isFailing(urlHealth, state) ? lastFailure(store, id, urlId) : null,
        }
      }),
      ...(hours && { hours: lastHours(store, id, now) }),
    }
  })

  const sourceIds = new Set([...settings.sources.keys(), ...collected.keys()])
  const sources = [...sourceIds].map((id) => {
    const figures = sourceFiguresOf(collected.get(id) ?? {})
    const known = settings.sources.get(id)
    return {
      id,
      name: known?.name ?? null,
      enabled: known?.enabled ?? null,
      ...figures,
      acceptedPerSecond: rate(figures.accepted),
    }
  })

  const totals = deliveryCountsOf({})
  let [attempts, failed] = [0, 0]
  for (const counts of sums.values()) {
    const figures = destinationFiguresOf(counts)
    for (const field of deliveryFields) totals[field] += figures[field]
    attempts += figures.attempts
    failed += figures.failed
  }
  const accepted = sources.reduce((sum, source) => sum + source.accepted, 0)
  const partitions = livePartitions(processes, now)
  const [calls, tiers] = [true, false].map((ofCalls) =>
    lagOf(partitions.filter(({ topic }) => (topic === callsTopic) === ofCalls)),
  )
  const states = processes.map((seen) => processStateOf(seen, now))
  return {
    from: new Date(period.from).toISOString(),
    asOf: isoOrNull(asOf),
    knownSince: isoOrNull(since),
    totals: {
      accepted,
      ...totals,
      attempts,
      failed,
      successRate: attempts === 0 ? null : (attempts - failed) / attempts,
      acceptedPerSecond: rate(accepted),
      plannedPerSecond: rate(totals.planned),
      deliveredPerSecond: rate(totals.delivered),
      attemptsPerSecond: rate(attempts),
    },
    withoutDestination: deliveryCountsOf(sums.get('') ?? {}),
    lag: calls!,
    waitingInTiers: tiers!,
    retriesOverdueMs: overdueOf(partitions.filter(({ topic }) => topic !== callsTopic)),
    processes: {
      live: states.filter((state) => state === 'live').length,
      gone: states.filter((state) => state === 'gone').length,
    },
    destinations,
    sources,
  }
}

export type Overview = ReturnType<typeof overviewOf>

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
  /** By URL: by the same rules. */
  urls: ReadonlyMap<string, Health>
  /** Its URLs share their tokens. */
  withoutToken: WithoutToken | null
}

/** How each destination is now, by id, whatever period is asked for. */
export function healthsOf(
  { store, callsTopic, now }: Pick<OverviewInput, 'store' | 'callsTopic' | 'now'>,
  destinations: readonly Destination[],
  endpoints = liveEndpoints(store.processes(), now),
): Map<string, DestinationHealth> {
  const reading = readingOf(store.processes(), { callsTopic, asOf: store.reach().asOf, now })
  const [judged, atMost] = [judgedMs, judgedAtMostMs].map((windowMs) =>
    sumsBetween(store, 'destination', lastMinutes(windowMs, now)),
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
      const ofUrl = (url: (typeof paced)[number]) =>
        healthOf({ ...facts, urls: [url], recent: urlOutcomesOf(counts, url.urlId) })
      const withoutToken = [...live.values()].find((url) => url.withoutToken)?.withoutToken ?? null
      return [id, { all, urls: new Map(paced.map((url) => [url.urlId, ofUrl(url)])), withoutToken }]
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
  const endpoints = liveEndpoints(store.processes(), now)
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
          lastFailure: isFailing(health.urls.get(urlId)!, state) ? lastFailure(store, id, urlId) : null,
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
