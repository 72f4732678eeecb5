import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import fc from 'fast-check'
import { dispositionLabels, type DispositionLabel } from '../../src/core/ledger/delivery-event.ts'
import { countFields, type AttemptKind } from '../../src/core/ledger/result-codes.ts'
import type { Tally } from '../../src/core/ledger/tally.ts'
import { LedgerChain, type Fact } from '../../src/core/ledger/ledger-chain.ts'
import { isInRuns, runsOf, uniteRuns, decodeFinished, tallyIdOf } from '../../src/core/offsets/offset-runs.ts'
import { GroupConsumer } from '../../src/forwarder/consume/group-consumer.ts'
import type { RecordProgress } from '../../src/forwarder/consume/assigned-partition.ts'
import type { PartitionCommit } from '../../src/forwarder/consume/record-source.ts'
import { FakeSource, FakeTallies, quiet, record, fetched } from './fakes.ts'

/** What becomes of a commit; `overtaken`: it counts, but the map is read again before its answer comes. */
type Fate = 'acknowledged' | 'answer lost' | 'refused' | 'overtaken'

type Step =
  | { kind: 'fetch'; count: number }
  | { kind: 'take'; count: number }
  | { kind: 'finish'; pick: number; destination: number; label: DispositionLabel }
  /** Of a record that is in progress, or, where it is late, of one that is finished. */
  | { kind: 'attempt'; pick: number; destination: number; ended: AttemptKind; ms: number; isLate: boolean }
  | { kind: 'commit'; fate: Fate }
  | { kind: 'stay' | 'break off' | 'new member' | 'crash' | 'move away' }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('fetch' as const), count: fc.nat(12) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('take' as const), count: fc.nat(12) }) },
  {
    weight: 14,
    arbitrary: fc.record({
      kind: fc.constant('finish' as const),
      pick: fc.nat(30),
      destination: fc.nat(2),
      label: fc.constantFrom(...dispositionLabels),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('attempt' as const),
      pick: fc.nat(30),
      destination: fc.nat(1),
      ended: fc.constantFrom<AttemptKind[]>('success', 'timeout', 'status_5xx', 'blocked'),
      ms: fc.constantFrom(1, 10, 11, 5_000, 5_001),
      isLate: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('commit' as const),
      fate: fc.constantFrom<Fate[]>('acknowledged', 'answer lost', 'refused', 'overtaken'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'stay' as const,
        'break off' as const,
        'new member' as const,
        'crash' as const,
        'move away' as const,
      ),
    }),
  },
)

/** Offsets without a record. */
const isHole = (offset: number) => offset % 7 === 3 || offset % 11 === 5

/** Steps after which nothing is forgotten of what a process has not committed. */
const isGentle = ({ kind }: Step) => !['crash', 'break off', 'new member', 'move away'].includes(kind)

const anySteps = fc.array(step, { maxLength: 120, size: 'max' })
const gentleSteps = anySteps.map((all) => all.filter(isGentle))

/** What tallies count is compared as texts, with how often each is counted. */
type Counts = Map<string, number>

function count(counts: Counts, text: string, times = 1): void {
  if (times > 0) counts.set(text, (counts.get(text) ?? 0) + times)
}

/** Everything that a tally counts, but for late attempts, which the test makes at a URL of their own. */
function countsIn({ counts }: Pick<Tally, 'counts'>, isLate: boolean): Counts {
  const found: Counts = new Map()
  for (const each of counts) {
    const id = each.destinationId
    for (const { urlId, outcomes, durations } of each.endpoints) {
      if ((urlId === 'late') !== isLate) continue
      for (const { outcome, count: times } of outcomes) count(found, `${id} ${urlId} ${outcome}`, times)
      for (const [bucket, times] of durations.entries()) count(found, `${id} ${urlId} in ${bucket}`, times)
    }
    if (isLate) continue
    for (const field of countFields) count(found, `${id} ${field}`, each[field])
    for (const { reason, count: times } of each.skipReasons) count(found, `${id} skipped: ${reason}`, times)
    for (const { reason, count: times } of each.deadLetterReasons)
      count(found, `${id} dead: ${reason}`, times)
  }
  return found
}

/** The bucket by the test's own reckoning. */
const bucketOf: Record<number, number> = { 1: 0, 10: 0, 11: 1, 5_000: 8, 5_001: 9 }

const countsOfAttempt = (id: string, urlId: string, ended: string, ms: number): string[] => [
  `${id} ${urlId} ${ended}`,
  `${id} ${urlId} in ${bucketOf[ms]}`,
]

/** One partition, its broker, and processes that come and go. */
class World {
  readonly source = new FakeSource()
  readonly tallies = new FakeTallies()
  /** What each process did, by process, and what a tally must count for it. */
  readonly done: { owner: string; offset: number; isAttempt: boolean; counts: string[] }[] = []
  readonly late: Counts = new Map()
  readonly #ended: RecordProgress[] = []
  readonly finished = new Set<string>()
  #committed: PartitionCommit | null = null
  #fate: Fate = 'acknowledged'
  #consumer: GroupConsumer
  #taken: RecordProgress[] = []
  #members = 0

  constructor() {
    this.source.committedMap = () => Promise.resolve(this.#committed ? [this.#committed] : [])
    this.source.acknowledges = async () => {
      if (this.#fate === 'refused') return false
      this.#committed = this.source.commits.at(-1)![0]!
      if (this.#fate === 'overtaken') await this.own(true)
      return this.#fate !== 'answer lost'
    }
    this.#consumer = this.#process()
  }

  #process(): GroupConsumer {
    const events = { wake() {}, lost() {}, resumed() {}, flush: () => Promise.resolve(), offsetsLost() {} }
    return new GroupConsumer(this.source, events, this.tallies, quiet)
  }

  async own(continued: boolean): Promise<void> {
    const owner = `m/${++this.#members}`
    this.#consumer.assigned([{ topic: 'calls', partition: 0 }], owner, continued)
    await turn()
  }

  get #work() {
    return [...this.#consumer.partitions()][0]!
  }

  async do(step: Step): Promise<void> {
    switch (step.kind) {
      case 'fetch': {
        const from = this.#work.reading.next!
        const offsets = Array.from({ length: step.count }, (_, index) => from + index)
        const records = offsets.filter((offset) => !isHole(offset)).map((offset) => record(offset))
        this.#consumer.fetched('calls', 0, { records: fetched(records), from, to: from + step.count })
        return
      }
      case 'take': {
        const count = Math.min(step.count, this.#work.buffered)
        for (let left = count; left > 0; left--) {
          const work = this.#work.next()
          work.remaining = 1 + (work.offset % 3)
          this.#taken.push(work)
        }
        return
      }
      case 'finish': {
        const [work] = this.#taken.splice(step.pick % Math.max(1, this.#taken.length), 1)
        if (!work) return
        const { owner } = work.partition.ledger
        const destination = ['a', 'b', null][step.destination]!
        const { code, counts } = this.#result(destination, step.label)
        this.done.push({ owner, offset: work.offset, isAttempt: false, counts })
        work.finishOne(code)
        if (work.remaining > 0) this.#taken.push(work)
        else {
          this.finished.add(`${owner} ${work.offset}`)
          this.#ended.push(work)
        }
        return
      }
      case 'attempt': {
        const works = step.isLate ? this.#ended : this.#taken
        const work = works[step.pick % Math.max(1, works.length)]
        if (!work) return
        const destinationId = ['a', 'b'][step.destination]!
        const id = step.isLate ? 'late' : 'u2'
        work.attemptEnded(this.tallies.codes.attempt({ destinationId, id }, step.ended, step.ms))
        const counts = countsOfAttempt(destinationId, id, step.ended, step.ms)
        const { owner } = work.partition.ledger
        if (step.isLate) for (const text of counts) count(this.late, text)
        else this.done.push({ owner, offset: work.offset, isAttempt: true, counts })
        return
      }
      case 'commit':
        this.#fate = step.fate
        return this.#consumer.commit()
      case 'stay':
        return this.own(true)
      case 'break off':
        this.#consumer.lost()
        return this.own(false)
      case 'new member':
        return this.own(false)
      case 'move away':
        this.#consumer.assigned([], `m/${++this.#members}`, true)
        return this.own(true)
      case 'crash':
        // Its state is gone; deliveries that it had started may still end, without effect.
        this.#taken = []
        this.#consumer = this.#process()
        return this.own(false)
    }
  }

  /** Its code, and what a tally must count for it. */
  #result(destination: string | null, label: DispositionLabel): { code: number; counts: string[] } {
    const { codes } = this.tallies
    const field = label === 'dead_lettered' ? 'deadLettered' : label
    const counts = [`${destination} ${field}`]
    if (label === 'delivered' && destination !== null)
      return {
        code: codes.delivered({ destinationId: destination, id: 'u1' }, 11),
        counts: [...counts, ...countsOfAttempt(destination, 'u1', 'success', 11)],
      }
    if (label === 'held' && destination !== null)
      return { code: codes.held({ destinationId: destination, pauseId: 'p', urlId: null }), counts }
    if (label === 'skipped') counts.push(`${destination} skipped: off`)
    if (label === 'dead_lettered') counts.push(`${destination} dead: gone`)
    const reason = label === 'skipped' ? 'off' : label === 'dead_lettered' ? 'gone' : null
    return { code: codes.code(destination, label, reason), counts }
  }

  check(isEnd = false): void {
    const position = this.#committed?.position ?? 0
    const metadata = this.#committed?.metadata ?? null
    const committed = { position, runs: decodeFinished(position, metadata) }
    const facts: Fact[] = []
    const chain = new LedgerChain(committed, tallyIdOf(metadata), () => ({
      add: (fact: Fact) => void facts.push(fact),
    }))
    for (const [index, { tally }] of this.tallies.tallied.entries()) chain.add(tally, index)
    const { faults, finished } = chain.end()
    assert.deepEqual(faults, [])
    if (!this.#committed) return
    assert.deepEqual(finished, committed)
    const counted = new Set<number>()
    for (const { tally, tallied } of facts) this.#checkFact(tally, tallied, counted)
    const late: Counts = new Map()
    for (const { tally } of facts) for (const [text, times] of countsIn(tally, true)) count(late, text, times)
    for (const [text, times] of late)
      assert.ok(times <= this.late.get(text)!, `${text} is counted ${times} times`)
    if (isEnd) assert.deepEqual(late, this.late)
    const held = uniteRuns([{ start: 0, end: position }], committed.runs)
    const last = held.at(-1)?.end ?? 0
    for (let offset = 0; offset < last; offset++) {
      if (isHole(offset) || !isInRuns(held, offset)) continue
      assert.ok(counted.has(offset), `offset ${offset} is committed and told of by nobody`)
    }
  }

  /** Nothing that is committed is held any more. */
  checkHeld(): void {
    const { ledger } = this.#work
    const position = this.#committed?.position ?? 0
    const open = this.done.filter(
      ({ owner, offset }) =>
        owner === ledger.owner && offset >= position && !this.finished.has(`${owner} ${offset}`),
    )
    assert.ok(ledger.size <= open.length, `${ledger.size} results are held, ${open.length} are open`)
  }

  #checkFact(tally: Fact['tally'], tallied: Fact['tallied'], counted: Set<number>): void {
    const ownerOf = (offset: number) =>
      tally.earlier.find(({ finished }) => isInRuns(pairs(finished, tally.start), offset))?.owner ??
      tally.owner
    const mine = this.done.filter(
      ({ owner, offset }) => isInRuns(tallied, offset) && owner === ownerOf(offset),
    )
    for (const { owner, offset } of mine) {
      assert.ok(this.finished.has(`${owner} ${offset}`), `${offset} is told of and was not finished`)
      counted.add(offset)
    }
    assert.equal(tally.records, new Set(mine.map(({ offset }) => offset)).size)
    const counts: Counts = new Map()
    for (const { counts: its } of mine) for (const text of its) count(counts, text)
    assert.deepEqual(countsIn(tally, false), counts)
    for (const id of ['a', 'b']) {
      const expected = mine.filter(({ counts: its }) => its.includes(`${id} held`))
      const offsets = tally.held.filter(({ destinationId }) => destinationId === id)
      assert.deepEqual(
        offsets.flatMap((each) => pairs(each.offsets, tally.start)),
        runsOf(expected.map(({ offset }) => offset)),
      )
    }
  }
}

function pairs(numbers: readonly number[], start: number) {
  const runs: { start: number; end: number }[] = []
  let at = start
  for (let index = 0; index < numbers.length; index += 2) {
    const from = at + numbers[index]!
    at = from + numbers[index + 1]!
    runs.push({ start: from, end: at })
  }
  return runs
}

test('property: whatever happens to commits, members and processes, the chain covers committed offsets once, names their owner, and sums up exactly what that did', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(anySteps, gentleSteps), async (steps) => {
      const world = new World()
      await world.own(false)
      for (const each of steps) {
        await world.do(each)
        if (each.kind === 'commit') world.check()
      }
      // The first may only find out that the second to last was acknowledged after all.
      await world.do({ kind: 'fetch', count: 5 })
      for (let times = 0; times < 2; times++) await world.do({ kind: 'commit', fate: 'acknowledged' })
      world.check(steps.every(isGentle))
      world.checkHeld()
    }),
    { numRuns: 400 },
  )
})
