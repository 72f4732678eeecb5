import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forgottenAcknowledgements, maxAcknowledgements } from '../../src/core/problems/acknowledgement.ts'
import type { Acknowledgement } from '../../src/core/problems/acknowledgement.ts'
import type { HeartbeatPartition } from '../../src/core/ledger/heartbeat.ts'
import type { Health } from '../../src/core/statistics/health.ts'
import type { SeenProcess } from '../../src/core/statistics/rollup-fold.ts'
import type { Deletions } from '../../src/operators/deletions/deletions.ts'
import { problemInput } from '../../src/operators/problems/facts.ts'
import {
  causesOf,
  headlineOf,
  problemsOf,
  type ProblemInput,
  type TroubledDestination,
} from '../../src/operators/problems/problems.ts'
import {
  heardUntil,
  processStateOf,
  readingOf,
  unreadPartitions,
} from '../../src/operators/statistics/processes.ts'
import { servicesOfTwo } from '../support/services-of-two.ts'

const now = 1_000_000_000
const minute = 60_000

const destination = (
  id: string,
  health: Partial<Health>,
  given: Partial<TroubledDestination> = {},
): TroubledDestination => ({
  ...{ id, name: id, health: { word: 'delivering', why: null, successRate: 1, ...health } },
  ...{ pausedSince: null, host: `${id}.example`, urls: [], queued: 0, deferred: 0 },
  ...given,
})

/** Everything that must run does, and nothing is wrong. */
const well = (given: Partial<ProblemInput> = {}): ProblemInput => ({
  ...{ destinations: [destination('crm', {})], nameOf: (id) => id, lag: 0, retriesOverdueMs: 0 },
  ...{ waiting: null, ageMs: 1_000, readsCalls: true, unread: [] },
  ...{ collector: { isLive: true, seenAt: now }, forwarder: { isLive: true, seenAt: now } },
  ...{
    unaccounted: [],
    badSince: new Map(),
    refusals: [],
    deadLetters: [],
    failedDeletes: [],
    lostRecords: 0,
  },
  ...{ audit: { ok: true, at: now - minute, faults: 0 }, deletions: [], pace: 1 },
  ...{ acknowledgements: new Map(), now },
  ...given,
})

const dead = (destinationId: string, count: number, lastAt = now - minute) => [
  { destinationId, reason: 'rejected', count, lastAt },
]
const stopped = { isLive: false, seenAt: now - minute }

const table: [name: string, given: Partial<ProblemInput>, ids: string[]][] = [
  ['all runs, and all arrives', {}, []],
  ['no collector runs', { collector: stopped }, ['no_collector']],
  ['no collector ever ran', { collector: { isLive: false, seenAt: null } }, ['no_collector']],
  ['no forwarder runs', { forwarder: stopped, readsCalls: false }, ['no_forwarder']],
  ['forwarders read nothing yet', { readsCalls: false }, ['nothing_read']],
  [
    'a forwarder is gone and nobody took over',
    { unread: [{ topic: 'calls', partition: 3, reader: 'forwarder on a', seenAt: now - minute }] },
    ['partitions_unread'],
  ],
  [
    'the ledger cannot be read, so nothing is known of the parts',
    { ageMs: 61_000, forwarder: stopped },
    ['ledger_unread'],
  ],
  [
    'destinations are in trouble',
    {
      destinations: [
        destination('held', { word: 'held' }, { pausedSince: now - minute }),
        destination('bad', { word: 'failing' }),
        destination('busy', { word: 'asked_to_wait' }),
        destination('off', { word: 'disabled' }),
      ],
    },
    ['destination:bad:failing', 'destination:busy:asked_to_wait', 'destination:held:held'],
  ],
  [
    'what holds for all destinations is raised once',
    {
      destinations: [destination('a', { word: 'not_known' }), destination('b', { word: 'not_known' })],
      forwarder: stopped,
    },
    ['no_forwarder'],
  ],
  [
    'calls are refused, and some were to be',
    {
      refusals: [
        { sourceId: 'shop', name: 'Shop', reasons: { unavailable: 3, suppressed: 9 }, since: now - minute },
        { sourceId: 'app', name: 'App', reasons: { suppressed: 9 }, since: now - minute },
      ],
    },
    ['refused:shop:unavailable'],
  ],
  ['calls wait longer than half a minute', { lag: 100 }, ['lag']],
  ['few calls wait', { lag: 20 }, []],
  ['calls wait and none is finished', { lag: 1, pace: 0 }, ['lag']],
  ['a retry is past due', { retriesOverdueMs: 31_000 }, ['overdue']],
  ['calls became nothing', { unaccounted: [{ destinationId: 'crm', count: 3 }] }, ['unaccounted:crm']],
  ['delete calls failed', { failedDeletes: dead('crm', 2) }, ['deletes_failed:crm']],
  ['deliveries failed', { deadLetters: dead('crm', 2) }, ['dead_letters:crm']],
  ['records could not be worked on', { lostRecords: 1 }, ['dead_letters']],
  ['an audit found faults', { audit: { ok: false, at: now, faults: 2 } }, ['audit']],
  [
    'a deletion was interrupted',
    {
      deletions: [
        { requestId: 'old', at: now - 6 * minute, users: 1 },
        { requestId: 'new', at: now - minute, users: 1 },
      ],
    },
    ['deletion:old'],
  ],
]

test('each problem is raised where it is there, and “All well” is said only without any', () => {
  for (const [name, given, ids] of table) {
    const problems = problemsOf(well(given))
    assert.deepEqual(
      problems.map(({ id }) => id),
      ids,
      name,
    )
    assert.equal(headlineOf(problems, true) === 'All well', ids.length === 0, name)
    for (const { title } of problems) assert.ok(title.length > 0, name)
  }
  assert.notEqual(headlineOf(problemsOf(well({ ageMs: null })), false), 'All well', 'nothing was read yet')
})

const seen = (id: string, at: number, size: number | null = null): ReadonlyMap<string, Acknowledgement> =>
  new Map([[id, { id, at, by: 'alice', size }]])

/** Whether the one problem still counts as seen. */
function isSeen(
  given: Partial<ProblemInput>,
  acknowledgements: ReadonlyMap<string, Acknowledgement>,
): boolean {
  const problems = problemsOf(well({ ...given, acknowledgements }))
  assert.equal(problems.length, 1)
  return problems[0]!.seen !== null
}

test('a problem that somebody has seen needs nobody, until it changes or grows', () => {
  const letters = seen('dead_letters:crm', now - 30_000, 40)
  assert.equal(isSeen({ deadLetters: dead('crm', 40) }, letters), true)
  assert.equal(isSeen({ deadLetters: dead('crm', 12) }, letters), true, 'some are older than an hour now')
  assert.equal(isSeen({ deadLetters: dead('crm', 41) }, letters), false, 'one more')
  assert.equal(isSeen({ deadLetters: dead('crm', 12, now - 10_000) }, letters), false, 'a newer one')
  assert.equal(isSeen({ deadLetters: dead('mail', 1) }, letters), false, 'another destination')

  const failing = { destinations: [destination('crm', { word: 'failing' })] }
  const since = (at: number | null) => ({
    ...failing,
    badSince: new Map([['crm', { since: at, lookedFrom: now - 60 * minute }]]),
  })
  const acknowledged = seen('destination:crm:failing', now - 20 * minute)
  assert.equal(isSeen(since(now - 25 * minute), acknowledged), true)
  assert.equal(isSeen(since(null), acknowledged), true, 'since before what was looked through')
  assert.equal(isSeen(since(now - 5 * minute), acknowledged), false, 'it had recovered meanwhile')
  const down = { destinations: [destination('crm', { word: 'down' })] }
  assert.equal(isSeen(down, acknowledged), false, 'it is worse')

  const lag = { lag: 1_000 }
  assert.equal(isSeen(lag, seen('lag', now - 60 * minute)), true)
  assert.equal(
    isSeen(lag, seen('lag', now - 25 * 60 * minute)),
    false,
    'where nobody knows since when, for a day',
  )
  const never = { collector: { isLive: false, seenAt: null } }
  assert.equal(isSeen(never, seen('no_collector', 5)), true, 'calls come on another way')

  const all = problemsOf(well({ deadLetters: dead('crm', 40), acknowledgements: letters }))
  assert.equal(headlineOf(all, true), 'Nothing new: one thing was seen')
  const one = problemsOf(
    well({ deadLetters: [...dead('crm', 40), ...dead('mail', 1)], acknowledgements: letters }),
  )
  assert.equal(headlineOf(one, true), '1 destination needs you')
})

test('problems of one cause are one row, with the most destinations first, and what nobody has seen before the rest', () => {
  const tenants = ['a', 'b', 'c'].map((id) =>
    destination(id, { word: 'failing' }, { host: 'shared.example' }),
  )
  const input = well({
    destinations: [
      destination('alone', { word: 'failing' }, { host: 'alone.example' }),
      ...tenants,
      destination('worse', { word: 'gone' }, { host: 'shared.example' }),
      destination('paused', { word: 'held' }, { pausedSince: now - 2 * minute }),
      destination('other', { word: 'held' }, { pausedSince: now - minute }),
    ],
    deadLetters: [...dead('a', 40), ...dead('b', 2)],
    waiting: new Map([
      ['a', 100],
      ['c', 5],
    ]),
    acknowledgements: seen('destination:worse:gone', now),
  })
  const causes = causesOf(problemsOf(input), input.waiting)
  assert.deepEqual(
    causes.map(({ title, destinations, size, waits, problems }) => [
      title,
      destinations,
      size,
      waits,
      problems.length,
    ]),
    [
      ['3 destinations at shared.example are failing', 3, null, 105, 3],
      ['alone is failing', 1, null, 0, 1],
      ['2 destinations are held', 2, null, 0, 2],
      ['2 destinations: 42 dead letters, most of them rejected', 2, 42, null, 2],
      ['worse is gone', 1, null, 0, 1],
    ],
  )
  assert.equal(causes[2]!.since, now - 2 * minute, 'since the first of them')
  assert.deepEqual([causes[3]!.text, causes[3]!.since], ['', now - minute], 'numbers are of each')
  const one = seen('destination:a:failing', now)
  const [first] = causesOf(problemsOf(well({ destinations: tenants, acknowledgements: one })), null)
  assert.deepEqual(
    first!.problems.map(({ destinationId }) => destinationId),
    ['b', 'c', 'a'],
    'what nobody has seen comes first',
  )
})

test('of what was seen the newest thousand are remembered', () => {
  const all = Array.from({ length: maxAcknowledgements + 2 }, (_, index): [string, Acknowledgement] => {
    const id = `p${index}`
    return [id, { id, at: index === 1 ? 9_999 : index, by: 'alice', size: null }]
  })
  assert.deepEqual(forgottenAcknowledgements(new Map(all)), ['p0', 'p2'])
  assert.deepEqual(forgottenAcknowledgements(new Map(all.slice(2))), [])
})

const partition = (topic: string, number: number): HeartbeatPartition => ({
  ...{ topic, partition: number, lag: 0, overdueMs: 0 },
})
const process = (seenAt: number, partitions: HeartbeatPartition[], given: object = {}): SeenProcess =>
  ({
    heartbeat: { roles: ['forwarder'], isLast: false, intervalMs: 10_000, partitions, ...given },
    seenAt,
  }) as SeenProcess

test('a process that is not heard while the ledger cannot be read is not missed', () => {
  const silent = process(now - 50_000, [partition('calls', 0)])
  const reach = (asOf: number | null) => ({ reach: () => ({ asOf, since: null }) })
  const stateAt = (asOf: number | null) => processStateOf(silent, heardUntil(reach(asOf), now))
  assert.equal(stateAt(now - 25_000), 'live', 'it was heard as long as anything was')
  assert.equal(stateAt(now - 19_000), 'gone')
  assert.equal(readingOf([silent], { callsTopic: 'calls', asOf: now - 25_000, now }), 'all')
  assert.equal(readingOf([silent], { callsTopic: 'calls', asOf: now - 19_000, now }), 'no_forwarder')
})

test('a partition is read by nobody once its reader is gone and no other has said that it reads it', () => {
  const [p0, p1] = [partition('calls', 0), partition('calls', 1)]
  const of = (...processes: SeenProcess[]) => ({
    unread: unreadPartitions(processes, now).map((each) => each.partition.partition),
    reading: readingOf(processes, { callsTopic: 'calls', asOf: now, now }),
  })
  const live = process(now, [p0])
  assert.deepEqual(of(live, process(now - 29_000, [p1])), { unread: [], reading: 'all' })
  assert.deepEqual(of(live, process(now - 31_000, [p1])), { unread: [1], reading: 'some' })
  assert.deepEqual(of(live, process(now - 31_000, [p1]), process(now, [p1])), { unread: [], reading: 'all' })
  // A rolling restart: others have half a minute to take over, and to say so.
  assert.deepEqual(of(live, process(now - 20_000, [p1], { isLast: true })), { unread: [], reading: 'all' })
  assert.deepEqual(of(live, process(now - 31_000, [p1], { isLast: true })), { unread: [1], reading: 'some' })
  assert.deepEqual(of(process(now, [])), { unread: [], reading: 'nothing' })
  assert.deepEqual(of(process(now, [partition('retries', 0)])).reading, 'nothing', 'it reads no calls')
  assert.deepEqual(of(process(now - 31_000, [p0])).reading, 'no_forwarder')
  assert.deepEqual(of(process(now, [], { roles: ['collector'] })).reading, 'no_forwarder')
  assert.equal(readingOf([live], { callsTopic: 'calls', asOf: null, now }), 'unknown')
  assert.equal(readingOf([live], { callsTopic: 'calls', asOf: now - 61_000, now }), 'unknown')
})

test('an interrupted deletion stays a problem, and keeps nobody waiting, while the list of deletions cannot be read', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let clock = now
  let made = Promise.resolve([{ requestId: 'd-1', state: 'interrupted' }])
  const deletions = { list: () => made } as unknown as Deletions
  const services = { ...servicesOfTwo().services, deletions, now: () => clock }
  const interrupted = async () => {
    const { input } = await problemInput(services, ['deletion'])
    return input.deletions.map(({ requestId }) => requestId)
  }
  assert.deepEqual(await interrupted(), ['d-1'])
  clock += minute + 1
  made = Promise.withResolvers<never>().promise
  assert.deepEqual([await interrupted(), await interrupted()], [['d-1'], ['d-1']])
})
