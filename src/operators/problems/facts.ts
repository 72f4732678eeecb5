// What problems are made from, read from the statistics and from what else knows of any.
import { isWell } from '../../core/statistics/health.ts'
import { badSince } from '../../core/statistics/judged-outcomes.ts'
import { movesOf, pipelineOf } from '../../core/statistics/pipeline.ts'
import { spanMs, type RollupCounts } from '../../core/statistics/rollup.ts'
import { collectedFiguresOf, deliveryCountsOf } from '../../core/statistics/views.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import type { DeletionSummary, Deletions } from '../deletions/deletions.ts'
import { KeptLook } from '../kept.ts'
import type { ConsoleServices } from '../services.ts'
import { standingsOf, type Standing } from '../statistics/overview.ts'
import {
  heardUntil,
  lagOf,
  livePartitions,
  overdueOf,
  processStateOf,
  readingOf,
  unreadPartitions,
} from '../statistics/processes.ts'
import { lastMinutes, sumsBetween, type StatisticsStore } from '../statistics/series.ts'
import {
  problemKinds,
  type LastPart,
  type ProblemInput,
  type ProblemKind,
  type TroubledDestination,
} from './problems.ts'

const windowMs = spanMs.hour
const paceMs = 5 * spanMs.minute
const refusedMs = 10 * spanMs.minute
/** Destinations in trouble of which it is looked up since when. */
const maxLooked = 50
/** As far back it is looked at most, to where somebody has seen it. */
const maxLookMs = 86_400_000

/** These are about one destination each: they take a look at all of them. */
const ofDestinations: ReadonlySet<ProblemKind> = new Set(['destination', 'slow', 'unaccounted'])

/** What problems are made from, of these kinds only. */
export async function problemInput(
  services: ConsoleServices,
  kinds: readonly ProblemKind[] = problemKinds,
): Promise<{ input: ProblemInput; standingOf: (id: string) => Standing | undefined }> {
  const { settings, callsTopic } = services
  const isWanted = (kind: ProblemKind) => kinds.includes(kind)
  const [store, audits, deletions] = await Promise.all([
    services.statistics(),
    services.audits(),
    isWanted('deletion') ? unfinishedDeletions(services.deletions, services.now) : [],
  ])
  const now = services.now()
  const { state } = settings
  const { asOf } = store.reach()
  const processes = store.processes()
  const heard = heardUntil(store, now)
  const partitions = livePartitions(processes, heard)
  const last = (role: string): LastPart => {
    const its = processes.filter(({ heartbeat }) => heartbeat.roles.includes(role))
    const seenAt = its.length === 0 ? null : Math.max(...its.map((seen) => seen.seenAt))
    return { isLive: its.some((seen) => processStateOf(seen, heard) === 'live'), seenAt }
  }
  const reading = readingOf(processes, { callsTopic, asOf, now })
  const { outcome } = audits
  const period = lastMinutes(windowMs, now)
  const isAbout = kinds.some((kind) => ofDestinations.has(kind))
  const standings = isAbout ? standingsOf({ store, settings: state, callsTopic, now, windowMs }).all : []
  const troubled = standings.filter(isTroubled)
  const { waiting, unaccounted } = await missingOf(standings, services)
  const input: ProblemInput = {
    destinations: troubled.map(troubledDestination),
    nameOf: (id) => state.destinations.get(id)?.name ?? id,
    lag: lagOf(partitions.filter(({ topic }) => topic === callsTopic)),
    retriesOverdueMs: overdueOf(partitions.filter(({ topic }) => topic !== callsTopic)),
    waiting,
    ageMs: asOf === null ? null : Math.max(0, now - asOf),
    collector: last('collector'),
    forwarder: last('forwarder'),
    readsCalls: reading === 'all' || reading === 'some',
    unread: unreadPartitions(processes, heard).map(({ partition: { topic, partition }, reader }) => ({
      ...{ topic, partition, seenAt: reader.seenAt },
      reader: `${reader.heartbeat.roles.join('+')} on ${reader.heartbeat.host} (pid ${reader.heartbeat.pid})`,
    })),
    unaccounted,
    badSince: badSinceOf(troubled, store, state, now),
    refusals: isWanted('refused') ? refusalsOf(store, state, now) : [],
    deadLetters: isWanted('dead_letters') ? store.deadLetters({ since: period.from }) : [],
    failedDeletes: isWanted('deletes_failed') ? store.deadLetters({ onlyDeletes: true }) : [],
    lostRecords: isWanted('dead_letters') ? lostRecordsOf(store, period) : 0,
    audit: outcome && {
      at: outcome.open?.at ?? outcome.at,
      ok: outcome.ok,
      faults: outcome.open?.faults ?? 0,
    },
    deletions,
    pace: isWanted('lag') ? paceOf(store, now) : 0,
    acknowledgements: state.acknowledgements,
    now,
  }
  const byId = new Map(troubled.map((standing) => [standing.destination.id, standing]))
  return { input, standingOf: (id) => byId.get(id) }
}

const isTroubled = ({ health, live, counts }: Standing): boolean =>
  !isWell(health.all) || ((counts.deferred ?? 0) > 0 && queuedOf(live) > 0)

const queuedOf = (live: Standing['live']): number =>
  [...live.values()].reduce((sum, { queued }) => sum + queued, 0)

function troubledDestination({ destination, health, live, counts }: Standing): TroubledDestination {
  const { id, name, pause, urls } = destination
  return {
    ...{ id, name, health: health.all, pausedSince: pause?.since ?? null },
    ...{ queued: queuedOf(live), deferred: counts.deferred ?? 0 },
    host: hostOf((urls.length > 1 && urls.find((url) => !isWell(health.ofUrl(url.id)))) || urls[0]!),
    urls: urls.map((url) => ({
      downSince: live.get(url.id)?.downSince ?? null,
      goneAt: url.goneAt,
    })),
  }
}

/** As far as it is known before holes are filled. */
const hostOf = ({ url }: { url: string }): string => /^\w+:\/\/([^/?#]*)/.exec(url)?.[1] ?? ''

/** Within the period, of those that were for no destination. */
const lostRecordsOf = (store: StatisticsStore, { from, to }: { from: number; to: number }): number =>
  store
    .series({ kind: 'destination', id: '' }, { span: 'minute', from, to })
    .reduce((sum, { counts }) => sum + (counts.deadLettered ?? 0), 0)

/** What waits in the tiers, which are read only where anything is scheduled; and what is missing there and everywhere else. */
async function missingOf(
  standings: readonly Standing[],
  { waiting }: Pick<ConsoleServices, 'waiting'>,
): Promise<Pick<ProblemInput, 'waiting' | 'unaccounted'>> {
  const scheduled = standings.filter(
    ({ counts: { retried = 0, deferred = 0, cameDue = 0 } }) => retried + deferred > cameDue,
  )
  const found = scheduled.length === 0 ? null : await waiting.counts()
  if (found === null) return { waiting: null, unaccounted: [] }
  const unaccounted = scheduled.flatMap(({ destination: { id }, counts: counted }) => {
    const counts = deliveryCountsOf(counted)
    const facts = { counts, waiting: found.get(id) ?? 0 }
    const { unaccounted } = pipelineOf({ ...facts, heldSent: 0, heldErased: 0, openDeadLetters: null })
    const count = waiting.sure(`${id} problems`, unaccounted!, movesOf(counts, facts.waiting))
    return count ? [{ destinationId: id, count }] : []
  })
  return { waiting: found, unaccounted }
}

function badSinceOf(
  troubled: readonly Standing[],
  store: StatisticsStore,
  { acknowledgements }: SettingsState,
  now: number,
): ProblemInput['badSince'] {
  const looked = troubled.filter(({ health }) => !isWell(health.all)).slice(0, maxLooked)
  return new Map(
    looked.map(({ destination: { id }, health }) => {
      const { word } = health.all
      const seenAt = acknowledgements.get(`destination:${id}:${word}`)?.at ?? now
      const from = Math.max(now - maxLookMs, Math.min(seenAt - spanMs.minute, now - windowMs))
      const lookedFrom = Math.floor(from / spanMs.minute) * spanMs.minute
      const period = { span: 'minute', from: lookedFrom, to: now } as const
      return [id, { since: badSince(store.series({ kind: 'destination', id }, period)), lookedFrom }]
    }),
  )
}

/** Of each source that had any. It began with the first minute that no ten minutes without any lie behind. */
function refusalsOf(
  store: StatisticsStore,
  { sources }: SettingsState,
  now: number,
): ProblemInput['refusals'] {
  return [...sumsBetween(store, 'source', lastMinutes(refusedMs, now))].flatMap(([sourceId, counts]) => {
    const { refusals: reasons } = collectedFiguresOf(counts)
    if (Object.keys(reasons).length === 0) return []
    const period = { span: 'minute', from: lastMinutes(windowMs, now).from, to: now } as const
    const minutes = store.series({ kind: 'source', id: sourceId }, period).filter(hasRefusals)
    let since = now
    for (const { at } of minutes.toReversed()) {
      if (since - at > refusedMs) break
      since = at
    }
    return [{ sourceId, name: sources.get(sourceId)?.name ?? null, reasons, since }]
  })
}

const hasRefusals = ({ counts }: { counts: RollupCounts }): boolean =>
  Object.keys(counts).some((name) => name.startsWith('code/'))

/** The minute that is not over yet is left out. */
function paceOf(store: StatisticsStore, now: number): number {
  const to = Math.floor(now / spanMs.minute) * spanMs.minute
  const minutes = store.totals('destination', { span: 'minute', from: to - paceMs, to })
  return minutes.reduce((sum, { counts }) => sum + (counts.planned ?? 0), 0) / (paceMs / 1_000)
}

/** Making the list of deletions reads a topic. */
const listTimes = { freshMs: 60_000, maxWaitMs: 5_000 }
const lists = new WeakMap<Deletions, KeptLook<DeletionSummary[]>>()

/** Those that were interrupted; of a list that may be a minute old. None while it cannot be read: that is raised by itself. */
async function unfinishedDeletions(deletions: Deletions, now: () => number): Promise<DeletionSummary[]> {
  let list = lists.get(deletions)
  if (!list) {
    list = new KeptLook(() => deletions.list().catch(() => []), listTimes, now)
    lists.set(deletions, list)
  }
  const made = list.get()
  // What is known is good enough until there is a newer one.
  return unfinished(list.newest ?? (await made) ?? [])
}

const unfinished = (all: readonly DeletionSummary[]): DeletionSummary[] =>
  all.filter(({ state }) => state !== 'finished')
