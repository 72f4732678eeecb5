// What problems are made from, read from the statistics and from what else knows of any.
import { isWell } from '../../core/statistics/health.ts'
import { badSince } from '../../core/statistics/judged-outcomes.ts'
import { movesOf, pipelineOf } from '../../core/statistics/pipeline.ts'
import { spanMs, type RollupCounts } from '../../core/statistics/rollup.ts'
import { collectedFiguresOf } from '../../core/statistics/views.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import type { DeletionSummary, Deletions } from '../deletions/deletions.ts'
import type { ConsoleServices } from '../services.ts'
import { overviewOf, type Overview } from '../statistics/overview.ts'
import { processStateOf, readingOf, unreadPartitions } from '../statistics/processes.ts'
import { lastMinutes, sumsBetween, type StatisticsStore } from '../statistics/series.ts'
import type { LastPart, ProblemInput } from './problems.ts'

const windowMs = spanMs.hour
const paceMs = 5 * spanMs.minute
const refusedMs = 10 * spanMs.minute
/** Destinations in trouble of which it is looked up since when. */
const maxLooked = 50
/** As far back it is looked at most, to where somebody has seen it. */
const maxLookMs = 86_400_000

export async function problemInput(services: ConsoleServices): Promise<ProblemInput> {
  const { settings, callsTopic } = services
  const [store, audits, deletions] = await Promise.all([
    services.statistics(),
    services.audits(),
    unfinishedDeletions(services.deletions, services.now()),
  ])
  const now = services.now()
  const { state } = settings
  const overview = overviewOf({ store, settings: state, callsTopic, now, windowMs, hours: false })
  const { asOf } = store.reach()
  const processes = store.processes()
  const last = (role: string): LastPart => {
    const its = processes.filter(({ heartbeat }) => heartbeat.roles.includes(role))
    const seenAt = its.length === 0 ? null : Math.max(...its.map((seen) => seen.seenAt))
    return { isLive: its.some((seen) => processStateOf(seen, now) === 'live'), seenAt }
  }
  const reading = readingOf(processes, { callsTopic, asOf, now })
  const { outcome } = audits
  const period = lastMinutes(windowMs, now)
  return {
    overview,
    ageMs: asOf === null ? null : Math.max(0, now - asOf),
    collector: last('collector'),
    forwarder: last('forwarder'),
    readsCalls: reading === 'all' || reading === 'some',
    unread: unreadPartitions(processes, now).map(({ partition: { topic, partition }, reader }) => ({
      ...{ topic, partition, seenAt: reader.seenAt },
      reader: `${reader.heartbeat.roles.join('+')} on ${reader.heartbeat.host} (pid ${reader.heartbeat.pid})`,
    })),
    unaccounted: await unaccountedOf(overview, services),
    badSince: badSinceOf(overview, store, state, now),
    refusals: refusalsOf(store, state, now),
    deadLetters: store.deadLetters({ since: period.from }),
    failedDeletes: store.deadLetters({ onlyDeletes: true }),
    lostRecords: overview.withoutDestination.deadLettered,
    audit: outcome && { ok: outcome.ok, at: outcome.at, faults: audits.last()?.report.faults.length ?? 0 },
    deletions,
    pace: paceOf(store, now),
    acknowledgements: state.acknowledgements,
    now,
  }
}

/** The tiers are read only where anything can be missing in them. */
async function unaccountedOf(
  { destinations }: Overview,
  { waiting }: Pick<ConsoleServices, 'waiting'>,
): Promise<ProblemInput['unaccounted']> {
  const scheduled = destinations.filter(({ retried, deferred, cameDue }) => retried + deferred > cameDue)
  const counts = scheduled.length === 0 ? null : await waiting.counts()
  if (counts === null) return []
  return scheduled.flatMap((each) => {
    const facts = { counts: each, waiting: counts.get(each.id) ?? 0 }
    const { unaccounted } = pipelineOf({ ...facts, heldSent: 0, heldErased: 0, openDeadLetters: null })
    const count = waiting.sure(`${each.id} problems`, unaccounted!, movesOf(each, facts.waiting))
    return count ? [{ destinationId: each.id, count }] : []
  })
}

function badSinceOf(
  { destinations }: Overview,
  store: StatisticsStore,
  { acknowledgements }: SettingsState,
  now: number,
): ProblemInput['badSince'] {
  const troubled = destinations.filter(({ health }) => !isWell(health)).slice(0, maxLooked)
  return new Map(
    troubled.map(({ id, health: { word } }) => {
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

/** How old the list of deletions may be, in ms: making it reads a topic. */
const listedMs = 60_000
const lists = new WeakMap<Deletions, { at: number; list: Promise<DeletionSummary[]> }>()

/** Those that were interrupted; of a list that may be a minute old. None while it cannot be read: that is raised by itself. */
async function unfinishedDeletions(deletions: Deletions, now: number): Promise<DeletionSummary[]> {
  const known = lists.get(deletions)
  if (!known || now - known.at > listedMs) {
    const list = deletions.list().catch(() => [])
    lists.set(deletions, { at: now, list })
    // What is known is good enough until there is a newer one.
    if (known) return unfinished(await known.list)
  }
  return unfinished(await lists.get(deletions)!.list)
}

const unfinished = (all: readonly DeletionSummary[]): DeletionSummary[] =>
  all.filter(({ state }) => state !== 'finished')
