// What a token that is limited to some sources and destinations works with: the one place that decides what it sees and
// may do. An operation needs to know nothing of it.
import { builtInSourceId } from '../core/call/built-in-source.ts'
import { noneText } from '../core/delivery/dead-letter-filter.ts'
import { reaches } from '../core/access/reach.ts'
import type { ReplayRange } from '../core/replay/replay-job.ts'
import type { Finish, Trace } from '../core/ledger/trace.ts'
import type { SettingsState } from '../core/settings/settings.ts'
import type { SeenProcess } from '../core/statistics/rollup-fold.ts'
import { PostriderError } from '../errors.ts'
import type { EventCatalogue } from './catalogue/catalogue.ts'
import { wrongField } from './check.ts'
import type { DeadLetterStore, StoredDeadLetter } from './dead-letters/dead-letters.ts'
import { settingsFor } from './destinations/destinations.ts'
import type { Caller } from './operation.ts'
import type { Replays, ReplayStatus } from './replay/replays.ts'
import type { ConsoleServices } from './services.ts'
import type { SettingsWriter } from './settings/writer.ts'
import type { RollupPeriod, StatisticsStore } from './statistics/series.ts'
import type { MessageFacts, MessagePorts } from './why/facts.ts'

type Sees = (id: string) => boolean

/** What an operation works with for this caller. */
export function servicesFor({ role, only }: Pick<Caller, 'role' | 'only'>, services: ConsoleServices) {
  const shown = { ...services, settings: settingsFor(role, services.settings) }
  return only === null ? shown : limitedServices(only, shown)
}

/** In place of what is not shown: the source of a dead letter, the host of a process. */
export const hiddenText = '(not shown)'

/** Whether a source or destination of this id is there for the holder. Operational events are about all destinations. */
const seesOf =
  (only: readonly string[]): Sees =>
  (id) =>
    id !== builtInSourceId && id !== noneText && reaches(only, id)

/** Each service by itself, so that a new one is not there before somebody has thought of what of it may be seen. */
function limitedServices(only: readonly string[], services: ConsoleServices): ConsoleServices {
  const sees = seesOf(only)
  const settings = limitedSettings(only, services.settings)
  const part: Partial<ConsoleServices> = {
    settings,
    secrets: services.secrets,
    sendSample: services.sendSample,
    newestCalls: (isWanted, most, signal) =>
      services.newestCalls((call) => sees(call.sourceId) && isWanted(call), most, signal),
    deadLetters: limitedDeadLetters(sees, services.deadLetters),
    computations: services.computations,
    erasures: services.erasures,
    messages: async () => limitedMessages(only, await services.messages()),
    catalogue: async () => limitedCatalogue(sees, await services.catalogue()),
    replays: limitedReplays(sees, services.replays),
    heldKeptMs: services.heldKeptMs,
    statistics: async () => limitedStatistics(sees, await services.statistics()),
    waiting: limitedWaiting(only, services.waiting),
    // For the list of problems: those of audits and of deletions are not among the holder's.
    audits: async () => noAudits,
    deletions: noDeletions,
    callsTopic: services.callsTopic,
    collectorUrl: services.collectorUrl,
    liveTail: limitedTail(sees, services.liveTail),
    now: services.now,
  }
  return new Proxy(part as ConsoleServices, {
    get(target, name) {
      if (Object.hasOwn(target, name)) return target[name as keyof ConsoleServices]
      throw new PostriderError('invariant', `a limited token has no use of ${String(name)}`)
    },
  })
}

const noAudits = { outcome: null, running: null, last: () => null } as unknown as Awaited<
  ReturnType<ConsoleServices['audits']>
>
const noDeletions = { list: async () => [] } as unknown as ConsoleServices['deletions']

/** Of the same settings the same, so that what is worked out of them is kept. */
const states = new WeakMap<SettingsState, WeakMap<readonly string[], SettingsState>>()

/** The settings without what is not the holder's; destinations without sources that are not. */
export function limitedState<S extends SettingsState>(only: readonly string[], state: S): S {
  let known = states.get(state)
  if (!known) states.set(state, (known = new WeakMap()))
  let shown = known.get(only)
  if (!shown) known.set(only, (shown = withoutOthers(seesOf(only), state)))
  return shown as S
}

function withoutOthers<S extends SettingsState>(sees: Sees, state: S): S {
  const sources = kept(state.sources, ({ id }) => sees(id))
  const plans = new Set([...sources.values()].map(({ plan }) => plan))
  const destinations = [...kept(state.destinations, ({ id }) => sees(id)).values()].map(
    (each) => [each.id, { ...each, sourceIds: each.sourceIds.filter(sees) }] as const,
  )
  return {
    ...state,
    sources,
    hidesBuiltIn: true,
    destinations: new Map(destinations),
    plans: kept(state.plans, ({ id }) => plans.has(id)),
    computations: kept(state.computations, ({ sourceId }) => sees(sourceId)),
    replays: kept(state.replays, (job) => seesRange(sees, job)),
    tokens: new Map(),
    // Addresses of people.
    mailAlerts: new Map(),
  }
}

const kept = <T>(all: ReadonlyMap<string, T>, isKept: (each: T) => boolean): Map<string, T> =>
  new Map([...all].filter(([, each]) => isKept(each)))

/** Whether a replay sends nothing but what goes to the holder's destinations. */
const seesRange = (sees: Sees, range: ReplayRange): boolean => namedIn(range)?.every(sees) ?? false

/** The destinations that it is bounded to; null where it is not. */
function namedIn(range: ReplayRange): string[] | null {
  if (range.deadLetters === null) return [range.destinationId]
  const { destination, kinds } = range.deadLetters
  if (destination === null && kinds === null) return null
  return [...(destination ?? []), ...(kinds ?? []).map(({ destinationId }) => destinationId ?? noneText)]
}

/** Of the commands that operators have. */
const commands: readonly string[] = ['pause_destination', 'resume_destination']

function limitedSettings(only: readonly string[], settings: SettingsWriter): SettingsWriter {
  return {
    get state() {
      return limitedState(only, settings.state)
    },
    rules: settings.rules,
    authorAfter: () => null,
    catchUp: (signal) => settings.catchUp(signal),
    execute: () => {
      throw new PostriderError('invariant', 'a limited token changes nothing by a command of its own')
    },
    async perform(command, { check, ...options } = {}) {
      if (!commands.includes(command.type) || !('id' in command))
        throw new PostriderError('invariant', `a limited token has no use of ${command.type}`)
      if (!limitedState(only, settings.state).destinations.has(command.id))
        throw unknown('destination', command.id)
      const done = await settings.perform(command, {
        ...options,
        check: check && ((state) => check(limitedState(only, state))),
      })
      return { ...done, state: limitedState(only, done.state) }
    },
  }
}

/** As if it did not exist: that it does is nobody else's business. */
const unknown = (what: string, id: string): PostriderError =>
  new PostriderError(
    'not_found',
    `${what} ${JSON.stringify(id)} does not exist; \`postrider ${what.replace(' ', '-')}s list\` shows all`,
  )

function limitedDeadLetters(sees: Sees, store: DeadLetterStore): DeadLetterStore {
  const shown = (stored: StoredDeadLetter): StoredDeadLetter | null => {
    const { deadLetter } = stored
    const delivery = deadLetter?.delivery
    if (!deadLetter || !delivery || !sees(delivery.destinationId)) return null
    const sourceId = sees(delivery.sourceId) ? delivery.sourceId : hiddenText
    return { ...stored, deadLetter: { ...deadLetter, delivery: { ...delivery, sourceId } } }
  }
  return {
    async *all(options) {
      for await (const stored of store.all(options)) {
        const its = shown(stored)
        if (its) yield its
      }
    },
    async byId(id, signal) {
      const found = await store.byId(id, signal).catch((error: unknown) => {
        if (error instanceof PostriderError && error.code === 'not_found') return []
        throw error
      })
      const its = found.flatMap((stored) => shown(stored) ?? [])
      if (its.length === 0) throw unknown('dead letter', id)
      return its
    },
    newest: (options) =>
      store.newest({
        ...options,
        pick: (stored) => {
          const its = shown(stored)
          return its && options.pick(its)
        },
      }),
  }
}

function limitedMessages(only: readonly string[], ports: MessagePorts): MessagePorts {
  const sees = seesOf(only)
  return {
    facts: async (messageIds, options) =>
      (await ports.facts(messageIds, options)).map((facts) => ownFacts(sees, facts)),
    async callsOfUser(userId, before, limit, options) {
      const found = await ports.callsOfUser(userId, before, limit, options)
      return { ...found, calls: found.calls.filter(({ call }) => sees(call.sourceId)) }
    },
    async settingsBetween(from, to, signal) {
      const found = await ports.settingsBetween(from, to, signal)
      return found.map(({ since, state }) => ({ since, state: limitedState(only, state) }))
    },
    erasures: (signal) => ports.erasures(signal),
  }
}

function ownFacts(sees: Sees, facts: MessageFacts): MessageFacts {
  const isOwn =
    facts.calls.length > 0 &&
    facts.calls.every(({ call }) => sees(call.sourceId)) &&
    facts.traces.every((trace) => trace.kind !== 'planned' || trace.sourceId === null || sees(trace.sourceId))
  if (!isOwn) return { ...facts, calls: [], omitted: 0, traces: [] }
  return {
    ...facts,
    traces: facts.traces.flatMap((trace) => ownTrace(sees, trace) ?? []),
    finish: (place) => ownFinish(sees, facts.finish(place)),
    async attemptsOf(place) {
      const attempts = await facts.attemptsOf(place)
      return attempts.filter(({ destinationId }) => sees(destinationId))
    },
  }
}

function ownTrace(sees: Sees, trace: Trace): Trace | null {
  if (trace.kind === 'planned')
    return { ...trace, plan: trace.plan.filter(({ destinationId }) => sees(destinationId)) }
  return trace.destinationId === null || sees(trace.destinationId) ? trace : null
}

/** Of what was held, and of what a tally counts by destination. */
function ownFinish(sees: Sees, { finished, tally }: Finish): Finish {
  if (tally === null) return { finished, tally }
  return {
    finished,
    tally: {
      ...tally,
      counts: tally.counts.filter(({ destinationId }) => destinationId === null || sees(destinationId)),
      held: tally.held.filter(({ destinationId }) => sees(destinationId)),
    },
  }
}

const limitedCatalogue = (sees: Sees, catalogue: EventCatalogue): EventCatalogue => ({
  async eventsOf(sourceId, options) {
    if (!sees(sourceId)) throw unknown('source', sourceId)
    return catalogue.eventsOf(sourceId, options)
  },
  wholeEventsOf: (sourceIds, isWanted, options) =>
    catalogue.wholeEventsOf(sourceIds.filter(sees), isWanted, options),
})

function limitedReplays(sees: Sees, replays: Replays): Replays {
  const list = () => replays.list().filter((job) => seesRange(sees, job))
  const own = (id: string): void => {
    if (list().some((job) => job.id === id)) return
    throw new PostriderError(
      'not_found',
      `replay ${JSON.stringify(id)} does not exist; \`postrider replays list\` shows those of the last 30 days`,
    )
  }
  const view = (status: ReplayStatus): ReplayStatus => {
    const known = new Set(list().map(({ id }) => id))
    return { ...status, overlapping: status.overlapping.filter((id) => known.has(id)) }
  }
  const ownRange = (range: ReplayRange): void => {
    const named = namedIn(range)
    if (named === null)
      throw wrongField(
        'deadLetters.destination',
        'is needed: this token is limited, so name the destinations whose dead letters are meant',
      )
    const other = named.find((id) => !sees(id))
    if (other !== undefined) throw unknown('destination', other)
  }
  return {
    async start(range, request, signal) {
      ownRange(range)
      const { status, repeated } = await replays.start(range, request, signal)
      return { status: view(status), repeated }
    },
    async dryRun(range, signal, progress) {
      ownRange(range)
      return replays.dryRun(range, signal, progress)
    },
    list,
    async show(id) {
      own(id)
      return view(await replays.show(id))
    },
    async turn(id, turn) {
      own(id)
      return view(await replays.turn(id, turn))
    },
  }
}

function limitedStatistics(sees: Sees, store: StatisticsStore): StatisticsStore {
  const sums: StatisticsStore['sums'] = (kind, period) =>
    new Map([...store.sums(kind, period)].filter(([id]) => sees(id)))
  return {
    reach: () => store.reach(),
    series: (subject, period) => (sees(subject.id) ? store.series(subject, period) : []),
    sums,
    totals: (kind, period) => totalsOf(store, kind, [...sums(kind, period).keys()], period),
    has: (subject) => sees(subject.id) && store.has(subject),
    attempts(filter, after, limit) {
      if (filter.destinationId !== null && !sees(filter.destinationId)) return { attempts: [], next: null }
      const page = store.attempts(filter, after, limit)
      return { ...page, attempts: page.attempts.filter(({ destinationId }) => sees(destinationId)) }
    },
    violations(filter, limit, skip) {
      if (filter.sourceId !== null) return sees(filter.sourceId) ? store.violations(filter, limit, skip) : []
      const all = store.violations(filter, Number.MAX_SAFE_INTEGER, 0)
      return all.filter(({ sourceId }) => sees(sourceId)).slice(skip, skip + limit)
    },
    deadLetters: (where) => store.deadLetters(where).filter(({ destinationId }) => sees(destinationId)),
    // By the ids of deliveries that the holder has been shown.
    isDeadLetter: (deliveryId) => store.isDeadLetter(deliveryId),
    deadLettersSince: () => store.deadLettersSince(),
    processes: () => store.processes().map((seen) => ownProcess(sees, seen)),
    lastAudit: () => null,
    keepAudit() {
      throw new PostriderError('invariant', 'a limited token runs no audit')
    },
  }
}

/** The sums of some of one kind, as the store sums up all. */
function totalsOf(
  store: StatisticsStore,
  kind: 'source' | 'destination',
  ids: readonly string[],
  period: RollupPeriod,
): ReturnType<StatisticsStore['totals']> {
  const sums = new Map<number, Record<string, number>>()
  for (const id of ids)
    for (const { at, counts } of store.series({ kind, id }, period)) {
      const sum = sums.get(at) ?? {}
      for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + (count ?? 0)
      sums.set(at, sum)
    }
  return [...sums].sort(([a], [b]) => a - b).map(([at, counts]) => ({ at, counts }))
}

/** That it works, and how it paces what is the holder's: how much of everything waits is the deployment's. */
function ownProcess(sees: Sees, seen: SeenProcess): SeenProcess {
  const { heartbeat } = seen
  return {
    ...seen,
    heartbeat: {
      ...heartbeat,
      host: hiddenText,
      pid: 0,
      partitions: heartbeat.partitions.map((each) => ({ ...each, lag: null, overdueMs: null })),
      endpoints: heartbeat.endpoints.filter(({ destinationId }) => sees(destinationId)),
      endpointsOmitted: 0,
    },
  }
}

function limitedWaiting(
  only: readonly string[],
  waiting: ConsoleServices['waiting'],
): ConsoleServices['waiting'] {
  const sees = seesOf(only)
  return {
    async counts() {
      const counts = await waiting.counts()
      return counts && new Map([...counts].filter(([id]) => sees(id)))
    },
    // Of what the holder sees: it is not the same sum as anybody else's.
    sure: (of: string, count: number, moves: string) =>
      waiting.sure(`${only.toSorted().join()} ${of}`, count, moves),
    list: async (id: string, most: number, signal: AbortSignal) =>
      sees(id) ? waiting.list(id, most, signal) : { calls: [], isCut: false },
    held: async (id: string, since: number, most: number, signal: AbortSignal) =>
      sees(id) ? waiting.held(id, since, most, signal) : { calls: [], isCut: false },
  } as ConsoleServices['waiting']
}

const limitedTail = (sees: Sees, liveTail: ConsoleServices['liveTail']): ConsoleServices['liveTail'] =>
  ({
    begin: (...[filter, sink, signal]: Parameters<ConsoleServices['liveTail']['begin']>) => {
      if (!sees(filter.sourceId)) throw unknown('source', filter.sourceId)
      return liveTail.begin(filter, sink, signal)
    },
  }) as ConsoleServices['liveTail']
