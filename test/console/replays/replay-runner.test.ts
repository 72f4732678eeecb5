import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { StoredDeadLetter } from '../../../src/operators/dead-letters/dead-letters.ts'
import { ChosenDeadLetters } from '../../../src/operators/replay/chosen-dead-letters.ts'
import { RecordTaker } from '../../../src/operators/replay/call-run.ts'
import { maxReplayLag, ReplayOutbox } from '../../../src/operators/replay/outbox.ts'
import { maxHeldRunning, maxRunning, ReplayRunner } from '../../../src/operators/replay/runner.ts'
import type {
  LedgerFollower,
  ReplayedRecord,
  ReplayProgress,
  ReplayRig,
  ReplaySource,
} from '../../../src/operators/replay/rig.ts'
import { noTotals, type DeadLetterReplay } from '../../../src/core/replay/replay-job.ts'
import type { SettingsCommand } from '../../../src/core/settings/commands.ts'
import { decide } from '../../../src/core/settings/decide.ts'
import { evolve } from '../../../src/core/settings/events.ts'
import { initialSettings } from '../../../src/core/settings/settings.ts'
import { topicNames } from '../../../src/core/topics.ts'
import { quickTime, timeNow, timePasses } from '../../support/quick-time.ts'
import { until } from '../../support/until.ts'

/** Replays whose runner begins them; none of them comes to an end. */
class Runs {
  state = initialSettings
  /** By how far it got: ids, in the order of their beginning. */
  readonly begun: string[] = []
  readonly released: string[] = []
  /** Each that read the ledger. */
  readonly followers = new Set<LedgerFollower>()
  /** Called when a replay to that destination reads the ledger; unless it returns true, that takes hours. */
  onRead: (destinationId: string) => boolean = () => false
  readonly #ending = new AbortController()
  #ended: Promise<void> = Promise.resolve()

  constructor(destinationIds: readonly string[]) {
    this.execute({ type: 'create_source', id: 'shop', name: 'S', writeKey: 'k', enabled: true })
    for (const id of destinationIds) {
      const rest = { headers: [], sharedSecret: null, options: {}, enabled: true }
      const urls = ['https://example.com/']
      this.execute({ type: 'create_destination', id, name: id, sourceIds: ['shop'], urls, ...rest })
    }
  }

  execute(command: SettingsCommand): void {
    const decision = decide(command, this.state)
    assert(decision.accepted, JSON.stringify(decision))
    if (decision.event) this.state = evolve(this.state, decision.event)
  }

  ask(id: string, destinationId: string, pauseId: string | null = null): void {
    const all = { types: null, events: null, user: null, messageId: null, rate: null }
    const only = [pauseId === null ? ('failed' as const) : ('held' as const)]
    const terms = { deadLetters: null, destinationId, only, since: 0, until: 1, ...all }
    this.execute({ type: 'start_replay', id, terms, pauseId, keptSince: null, at: timeNow() })
  }

  run(t: TestContext): void {
    const state = () => this.state
    const rig = {
      settings: {
        get state() {
          return state()
        },
        catchUp: async () => {},
        perform: () => assert.fail('no replay comes to its end'),
      },
      topics: topicNames(''),
      groupId: 'g',
      source: {
        spans: async () => [],
        each: async () => {},
        settings: async function* () {},
        committed: async () => new Map(),
      },
      ledger: {
        read: async (follower: LedgerFollower, signal: AbortSignal) => {
          this.followers.add(follower)
          if (!this.onRead(follower.destinationId)) await this.#hang(signal)
        },
      },
      acquire: async (id: string) => {
        this.begun.push(id)
        return { check() {}, commit: async () => {}, release: async () => void this.released.push(id) }
      },
      progress: async () => [],
      openTopic: async () => ({ append: async () => [], lag: async () => 0, close() {} }),
      log: { info() {}, warn: (...said: unknown[]) => assert.fail(JSON.stringify(said)) },
      random: () => 1,
      now: timeNow,
    } as unknown as ReplayRig
    this.#ended = new ReplayRunner(rig).run(this.#ending.signal)
    t.after(() => {
      this.#ending.abort()
      return this.#ended
    })
  }

  async #hang(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const { promise, reject } = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    return promise
  }
}

test('many replays of one destination keep that of another one no moment waiting', async (t) => {
  quickTime(t)
  const runs = new Runs(['busy', 'other'])
  for (let index = 0; index < 2 * maxRunning; index++) runs.ask(`busy-${index}`, 'busy')
  runs.ask('of-another', 'other')
  runs.run(t)
  await until(() => runs.begun.length === maxRunning, 600_000)
  assert.deepEqual(runs.begun.slice(0, 2), ['busy-0', 'of-another'])
  assert.deepEqual(
    runs.begun.slice(2),
    Array.from({ length: maxRunning - 2 }, (_, index) => `busy-${index + 1}`),
  )
})

const pauseOf = (id: string): SettingsCommand => ({
  ...{ type: 'pause_destination', id, pauseId: `p-${id}` },
  ...{ at: timeNow(), until: null },
})

test('a replay to a destination that is paused or disabled is not begun, and takes no place', async (t) => {
  quickTime(t)
  const runs = new Runs(['paused', 'disabled', 'other'])
  for (let index = 0; index < maxRunning; index++) runs.ask(`paused-${index}`, 'paused')
  for (let index = 0; index < maxRunning; index++) runs.ask(`disabled-${index}`, 'disabled')
  runs.ask('of-another', 'other')
  runs.execute(pauseOf('paused'))
  runs.execute({ type: 'disable_destination', id: 'disabled' })
  runs.run(t)
  await until(() => runs.begun.includes('of-another'), 600_000)
  assert.deepEqual(runs.begun, ['of-another'])
  runs.execute({ type: 'enable_destination', id: 'disabled' })
  await until(() => runs.begun.includes('disabled-0'), 600_000)
})

test('a replay whose destination is disabled while it runs leaves its place, and goes on once it may send', async (t) => {
  quickTime(t)
  const runs = new Runs(['disabled', 'other'])
  for (let index = 0; index < maxRunning; index++) runs.ask(`first-${index}`, 'disabled')
  runs.onRead = (id) => {
    if (id !== 'disabled') return false
    runs.execute({ type: 'disable_destination', id })
    return true
  }
  runs.run(t)
  await until(() => runs.begun.length === maxRunning, 600_000)
  runs.ask('of-another', 'other')
  await until(() => runs.begun.includes('of-another'), 600_000)
  assert.ok(runs.released.length > 0, 'one has left its place')
  await until(() => runs.released.length >= maxRunning, 600_000)
  runs.onRead = () => false
  runs.execute({ type: 'enable_destination', id: 'disabled' })
  await until(() => runs.begun.filter((id) => id === 'first-0').length === 2, 600_000)
})

test('a replay whose destination is paused over and over reads the ledger once', async (t) => {
  quickTime(t)
  const runs = new Runs(['crm'])
  runs.ask('long', 'crm')
  runs.onRead = (id) => {
    runs.execute({ type: 'disable_destination', id })
    return true
  }
  runs.run(t)
  for (let turn = 1; turn <= 3; turn++) {
    await until(() => runs.released.length === turn, 600_000)
    runs.execute({ type: 'enable_destination', id: 'crm' })
  }
  assert.equal(runs.followers.size, 1)
})

test('the replays of many pauses run at once, and leave its place to one that somebody asked for', async (t) => {
  quickTime(t)
  const runs = new Runs(['crm'])
  const count = maxHeldRunning + 2
  for (let index = 0; index < count; index++) {
    const pauseId = `p-${index}`
    runs.execute({ type: 'pause_destination', id: 'crm', pauseId, at: timeNow(), until: null })
    runs.execute({ type: 'resume_destination', id: 'crm', pauseId, at: timeNow() })
    runs.ask(`held-${pauseId}`, 'crm', pauseId)
  }
  runs.ask('asked', 'crm')
  runs.run(t)
  await until(() => runs.begun.length >= maxHeldRunning + 1, 600_000)
  assert.equal(runs.begun.length, maxHeldRunning + 1)
  assert.ok(runs.begun.includes('asked'))
})

/** How far a replay comes in a log of 100 offsets that begins there, and from which these are taken while it reads. */
async function lookedAt(low: number, takenMeanwhile: [number, number] | null, before: ReplayProgress[]) {
  const { signal } = new AbortController()
  const outbox = new ReplayOutbox({
    ...{ job: { rate: null }, before, turn: async () => {}, signal },
    topic: { append: async () => [], lag: async () => 0, close() {} },
    lease: { check() {}, commit: async () => {}, release: async () => {} },
  })
  const source: Pick<ReplaySource, 'spans' | 'read'> = {
    spans: async () => [{ partition: 0, low, high: 100 }],
    async *read(_, [span], __, onGone) {
      const [from, to] = takenMeanwhile ?? [100, 100]
      // What is read was fetched a while ago.
      if (takenMeanwhile) onGone!({ partition: 0, low: from, high: to })
      for (let offset = span!.low; offset < span!.high; offset++) {
        const rest = { partition: 0, key: null, value: null, headers: {}, timestamp: 0 }
        if (offset < from || offset >= to) yield { offset, ...rest }
      }
    },
  }
  const positions: number[] = []
  const spans = [{ partition: 0, low, high: 100 }]
  await new RecordTaker(source as ReplaySource, outbox, signal).take('calls', spans, null, async () => {
    await outbox.flush()
    positions.push(outbox.positionOf({ topic: 'calls', partition: 0 }) ?? 0)
  })
  await outbox.flush()
  const { looked, lost } = outbox.totals
  return { looked, lost, positions: new Set(positions) }
}

test('a replay counts what retention takes before it has looked at it, while it reads and from one process to the next', async () => {
  const whileReading = await lookedAt(0, [20, 50], [])
  assert.deepEqual([whileReading.looked, whileReading.lost], [70, 30])
  assert.ok(whileReading.positions.has(19), 'what lies before is looked at first')
  const done = [{ topic: 'calls', partition: 0, position: 40, totals: noTotals() }]
  const goesOn = await lookedAt(60, null, done)
  assert.deepEqual([goesOn.looked, goesOn.lost], [40, 20])
  const toTheEnd = await lookedAt(0, [90, 120], [])
  assert.deepEqual([toTheEnd.looked, toTheEnd.lost], [90, 10])
})

test('of the failures of a delivery the first is sent that can be, also by a process that goes on', async () => {
  const reasons = ['too_large', 'rejected', 'rejected'] as const
  const stored = reasons.map((reason, offset) => {
    const origin = { topic: 'calls', partition: 0, offset: 7, appendedAt: 0 }
    const delivery = { id: 'm:crm', messageId: 'm', destinationId: 'crm', endpointIds: [], origin }
    const record = { partition: 0, offset, key: null, value: null, headers: {}, timestamp: 0 }
    const deadLetter = { delivery, origin, reason, omittedBytes: null, failedAt: 0 }
    return { id: `0-${offset}`, record, deadLetter, problem: null } as unknown as StoredDeadLetter
  })
  const deadLetters = { ids: null, reason: null, destination: null, status: null, kinds: null }
  const job = { id: 'r', deadLetters, since: null, until: null } as unknown as DeadLetterReplay
  const rig = {
    settings: { state: initialSettings },
    topics: topicNames(''),
    source: {
      storedDeadLetter: async ({ offset }: { offset: number }) => stored[offset]!,
      topics: async () => new Set(),
    },
    erasures: async () => ({ covers: () => false }),
    random: () => 1,
    now: () => 0,
  } as unknown as ReplayRig
  for (const recalled of [0, 1, 2]) {
    const chosen = await ChosenDeadLetters.open(job, rig, new AbortController().signal)
    const verdicts: (string | undefined)[] = []
    for (const { record } of stored)
      if (record.offset < recalled) await chosen.recall(record)
      else verdicts.push((await chosen.verdict(record))?.is)
    assert.deepEqual(verdicts, ['refused', 'sent', 'repeated'].slice(recalled))
  }
})

test('a replay with a rate sends no more than that in any second, also after minutes in which it found nothing', async (t) => {
  quickTime(t)
  const sent: { at: number; records: number }[] = []
  const outbox = new ReplayOutbox({
    job: { rate: 50 },
    topic: {
      append: async ({ length }) => {
        sent.push({ at: timeNow(), records: length })
        return []
      },
      lag: async () => 0,
      close() {},
    },
    lease: { check() {}, commit: async () => {}, release: async () => {} },
    before: [],
    turn: async () => {},
    signal: new AbortController().signal,
  })
  const record = { delivery: { body: Buffer.alloc(0) } } as unknown as ReplayedRecord
  for (let offset = 0; offset < 500; offset++) {
    if (offset % 250 === 0) timePasses(180_000)
    outbox.add({ topic: 'calls', partition: 0 }, 'failed', record)
    if (outbox.isFull) await outbox.flush()
  }
  const inSecondFrom = (begin: number) =>
    sent.reduce((sum, { at, records }) => sum + (at >= begin && at < begin + 1_000 ? records : 0), 0)
  assert.equal(Math.max(...sent.map(({ at }) => inSecondFrom(at))), 50)
  assert.equal(
    sent.reduce((sum, { records }) => sum + records, 0),
    500,
  )
})

test('what waits for room is not sent once its user is erased, and counts as erased', async (t) => {
  quickTime(t)
  const erased = new Set<string>()
  const sent: ReplayedRecord[] = []
  const outbox = new ReplayOutbox({
    job: { rate: null },
    topic: {
      append: async (records) => {
        sent.push(...records)
        return []
      },
      async lag() {
        // No forwarder works on what is there, and meanwhile somebody asks for a deletion.
        if (erased.has('ada')) return 0
        erased.add('ada')
        return maxReplayLag
      },
      close() {},
    },
    lease: { check() {}, commit: async () => {}, release: async () => {} },
    before: [],
    turn: async () => {},
    signal: new AbortController().signal,
  })
  for (const user of ['ada', 'bob']) {
    const record = { key: Buffer.from(user), headers: {}, topic: 'calls', value: Buffer.from('x') }
    outbox.add({ topic: 'dead', partition: 0 }, 'raw', record, () => erased.has(user))
  }
  await outbox.flush()
  assert.deepEqual(
    sent.map(({ key }) => String(key)),
    ['bob'],
  )
  assert.deepEqual([outbox.totals.raw, outbox.totals.erased], [1, 1])
})
