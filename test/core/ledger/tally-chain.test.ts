// Which tallies count, and that the audit, the statistics and the index behind `why` all go by it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { deliveryEvent } from '../../../src/core/ledger/delivery-event.ts'
import { LedgerChain, type Fact } from '../../../src/core/ledger/ledger-chain.ts'
import { noTally } from '../../../src/core/ledger/result-codes.ts'
import {
  addTally,
  confirmTally,
  hasPending,
  newTallyChain,
  type TallyChain,
} from '../../../src/core/ledger/tally-chain.ts'
import type { Tally } from '../../../src/core/ledger/tally.ts'
import { RollupFold } from '../../../src/core/statistics/rollup-fold.ts'
import { subjectKey } from '../../../src/core/statistics/rollup.ts'
import { TraceDatabase } from '../../../src/operators/why/trace-database.ts'

/** It covers every offset from `start` up to `position`, and names itself in whatever is made of it. */
const tally = (id: string, predecessor: string | null, start = 0, position = start + 1): Tally => ({
  ...{ id, predecessor, start, position, group: 'group', before: [], finished: [0, position - start] },
  ...{ lost: [], records: position - start, owner: id, earlier: [], held: [] },
  counts: [{ ...noTally(id), delivered: 1 }],
})

type Verdicts = { kept: { id: string }; counts: boolean }[]

/** What counts: `+a` from now on, `-a` no longer. */
const shown = (verdicts: Verdicts): string =>
  verdicts.map(({ kept, counts }) => `${counts ? '+' : '-'}${kept.id}`).join(' ')

/** A chain whose state is stored after each step. */
class Stored {
  #text = JSON.stringify(newTallyChain())

  add(...tallies: Tally[]): string {
    return tallies
      .map((each) => this.#do((chain) => shown(addTally(chain, each, { id: each.id }))))
      .filter((found) => found !== '')
      .join(' ')
  }

  confirm = (id: string): string => this.#do((chain) => shown(confirmTally(chain, id)))
  get isPending(): boolean {
    return this.#do(hasPending)
  }

  #do<T>(step: (chain: TallyChain<{ id: string }>) => T): T {
    const chain = JSON.parse(this.#text) as TallyChain<{ id: string }>
    const result = step(chain)
    this.#text = JSON.stringify(chain)
    return result
  }
}

test('a tally that the metadata names counts once, and is waited for no longer', () => {
  const chain = new Stored()
  assert.equal(chain.add(tally('a', null), tally('failed', 'a'), tally('b', 'a')), '+a')
  assert.ok(chain.isPending)
  assert.equal(chain.confirm('b'), '+b')
  assert.equal(chain.confirm('b'), '')
  assert.ok(!chain.isPending)
  assert.equal(chain.add(tally('c', 'b')), '')
  assert.ok(chain.isPending)
})

test('a tally whose commit was overtaken, because its answer was lost, gives its place to the next one', () => {
  const chain = new Stored()
  chain.add(tally('a', null), tally('lost', 'a'))
  assert.equal(chain.confirm('lost'), '+lost')
  assert.equal(chain.add(tally('b', 'a')), '')
  assert.equal(chain.add(tally('c', 'b')), '-lost +b')
  const before = new Stored()
  before.add(tally('a', null), tally('lost', 'a'))
  before.confirm('lost')
  before.add(tally('b', 'a'))
  assert.equal(before.confirm('b'), '-lost +b')
})

test('of many failed commits the first and the last may have been made', () => {
  for (const made of ['t0', 't999']) {
    const chain = new Stored()
    chain.add(...Array.from({ length: 1_000 }, (_, index) => tally(`t${index}`, null)))
    assert.equal(chain.add(tally('next', made)), `+${made}`)
  }
})

test('processes that lost the partition long ago and write late do not cost the chain', () => {
  const chain = new Stored()
  const ids = Array.from({ length: 20 }, (_, index) => `t${index}`)
  for (const [index, id] of ids.entries()) chain.add(tally(id, ids[index - 1] ?? null))
  for (const id of ids.slice(0, 15)) chain.add(tally(`late, after ${id}`, id))
  assert.equal(chain.add(tally('next', 't19')), '+t19')
})

test('what a process that lost the partition writes late is not waited for', () => {
  const chain = new Stored()
  chain.add(tally('a', null), tally('b', 'a'), tally('c', 'b'), tally('late', 'a'))
  assert.ok(chain.isPending)
  assert.equal(chain.confirm('c'), '+c')
  assert.ok(!chain.isPending)
})

test('where Kafka lost the newest commits the chain goes on from the one that it kept', () => {
  const chain = new Stored()
  chain.add(tally('a', null), tally('b', 'a'), tally('c', 'b'), tally('d', 'c'))
  assert.equal(chain.add(tally('again', 'a'), tally('next', 'again')), '+again')
  assert.equal(chain.confirm('next'), '+next')
})

test('a tally that is written again, however late, counts once', () => {
  const chain = new Stored()
  const [a, b] = [tally('a', null), tally('b', 'a')]
  assert.equal(chain.add(a, a, b, a, b, tally('c', 'b'), a, b, tally('d', 'c')), '+a +b +c')
})

test('a tally whose offsets cannot be read counts as little as if it were not there', () => {
  const chain = new Stored()
  assert.equal(chain.add(tally('a', null), { ...tally('b', 'a'), finished: [-1, 2] }), '')
  assert.equal(chain.confirm('b'), '')
})

type Step =
  | { do: 'commit'; fate: 'made' | 'answer lost' | 'refused'; count: number }
  | { do: 'write late'; pick: number }
  | { do: 'set offsets'; to: number }
  | { do: 'write again'; back: number }
  | { do: 'take over' | 'confirm' | 'store' }

const simple = (what: 'take over' | 'confirm' | 'store') => fc.constant({ do: what } as const)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant('commit' as const),
      fate: fc.constantFrom('made' as const, 'made' as const, 'answer lost' as const, 'refused' as const),
      count: fc.integer({ min: 0, max: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('write late' as const), pick: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('set offsets' as const), to: fc.nat(40) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('write again' as const), back: fc.nat(4) }) },
  { weight: 2, arbitrary: simple('take over') },
  { weight: 3, arbitrary: simple('confirm') },
  { weight: 3, arbitrary: simple('store') },
)

/** A process that owns the partition, or did. */
interface Process {
  predecessor: string | null
  /** What its last acknowledged commit holds, and how far it has come. */
  base: number
  position: number
}

const partition = { topic: 'calls', partition: 0 }
const group = { group: 'group', ...partition }
const keyOf = (id: string): string => subjectKey({ kind: 'destination', id })

/** The statistics, as a console keeps them that is stopped and started between any two tallies. */
class Folded {
  readonly #counted = new Map<string, number>()
  readonly #chains = new Map<string, string>()
  #fold = this.#begin()

  #begin(): RollupFold {
    const chains = [...this.#chains].map(([key, text]) => [key, JSON.parse(text)] as const)
    const state = { chains: new Map(chains), summaries: new Map() }
    return new RollupFold({ calls: 'group', retries: 'group.retries', replays: 'retry.replay' }, state)
  }

  add(each: Tally): void {
    this.#fold.add(deliveryEvent('tally', 0, { ...partition, tally: each }), 0)
  }

  confirm(tip: string | null): void {
    if (tip !== null) this.#fold.confirm(group, tip)
  }

  store(): void {
    const { counts, chains } = this.#fold.take()
    for (const [subject, minutes] of counts) {
      const sum = [...minutes.values()].reduce((all, each) => all + each.delivered!, 0)
      this.#counted.set(subject, (this.#counted.get(subject) ?? 0) + sum)
    }
    for (const [key, chain] of chains) this.#chains.set(key, JSON.stringify(chain))
    this.#fold = this.#begin()
  }

  timesOf = (id: string): number => this.#counted.get(keyOf(id)) ?? 0
}

/** The index behind `why`. */
class Indexed {
  readonly #database = new TraceDatabase(':memory:', 'here')
  #batch: Tally[] = []
  #offset = 0

  add(each: Tally): void {
    this.#batch.push(each)
  }

  store(): void {
    const entries = this.#batch.map((each) => ({
      place: { topic: 'ledger', partition: 0, offset: this.#offset++ },
      ...{ timestamp: 0, key: null, more: [], trace: null, call: null },
      tally: { ...partition, tally: { ...each, at: 0 } },
    }))
    this.#batch = []
    this.#database.take('ledger', entries, this.#database.beginning)
  }

  tallyAt = (offset: number, tip: string | null): string | undefined =>
    this.#database.factOf({ ...partition, offset }, tip)?.owner

  close = (): void => this.#database.close()
}

/** One partition, what its group has committed, and the processes that own it or think so. */
class World {
  readonly log: Tally[] = []
  committed: { position: number; tip: string | null } = { position: 0, tip: null }
  readonly folded = new Folded()
  readonly indexed = new Indexed()
  /** Tallies whose commit was made and stands, of each beginning. */
  readonly #before: Tally[] = []
  #owner: Process = { predecessor: null, base: 0, position: 0 }
  #late: Process[] = []
  /** Whether a console follows meanwhile; else it reads all of it later. */
  readonly #isFollowed: boolean

  constructor(isFollowed: boolean) {
    this.#isFollowed = isFollowed
  }

  do(step: Step): void {
    switch (step.do) {
      case 'commit':
        return this.#commit(step.fate, step.count)
      case 'take over':
        this.#late.push(this.#owner)
        return this.#takeOver()
      case 'write late': {
        const late = this.#late[step.pick]
        if (late) this.#write(late, 1)
        return
      }
      case 'set offsets':
        return this.#setOffsets(step.to)
      case 'write again': {
        const again = this.log.at(-1 - step.back)
        if (again) this.#append(again)
        return
      }
      case 'confirm':
        if (this.#isFollowed) this.folded.confirm(this.committed.tip)
        return
      case 'store':
        this.folded.store()
        this.indexed.store()
    }
  }

  /** Names what was committed of the present beginning, the oldest first. */
  chain(): Tally[] {
    const chain: Tally[] = []
    for (let id = this.committed.tip; id !== null; id = chain[0]!.predecessor)
      chain.unshift(this.log.find((each) => each.id === id)!)
    return chain
  }

  standing = (): Tally[] => [...this.#before, ...this.chain()]

  end(): void {
    // While nothing was committed after offsets were set, it is open which commit was the last before.
    if (this.committed.tip === null) this.#commit('made', 1)
    this.folded.confirm(this.committed.tip)
    this.do({ do: 'store' })
  }

  #takeOver(): void {
    const { tip, position } = this.committed
    this.#owner = { predecessor: tip, base: position, position }
  }

  #append(each: Tally): void {
    this.log.push(each)
    this.folded.add(each)
    this.indexed.add(each)
  }

  /** Kafka refuses the commit of a process that is not the owner, but not its tally. */
  #write(process: Process, count: number): Tally {
    process.position += count
    const { predecessor, base, position } = process
    const written = tally(`t${this.log.length}`, predecessor, base, position)
    if (position === base) written.finished = []
    this.#append(written)
    return written
  }

  #commit(fate: 'made' | 'answer lost' | 'refused', count: number): void {
    const { id, position } = this.#write(this.#owner, count)
    if (fate === 'refused') return
    this.committed = { position, tip: id }
    if (fate === 'made') this.#takeOver()
  }

  /** Kafka lets nobody do it before all processes were stopped; one that stops commits what it has. */
  #setOffsets(position: number): void {
    // What follows two settings alike cannot be told from commits that failed.
    while (this.#owner.predecessor === null) this.#commit('made', 1)
    this.#commit('made', 1)
    this.do({ do: 'confirm' })
    this.#before.push(...this.chain())
    this.committed = { position, tip: null }
    this.#late = []
    this.#takeOver()
  }
}

function auditOf({ log, committed: { position, tip } }: World) {
  const chain = new LedgerChain({ position, runs: [] }, tip, () => {
    const ids: string[] = []
    return { ids, add: (fact: Fact) => void ids.push(fact.tally.id) }
  })
  for (const each of log) chain.add(each, 0)
  const { sink, faults } = chain.end()
  return { ids: sink.ids, faults }
}

/** Of those that cover an offset, `why` shows the one that begins last. */
function lastCovering(tallies: readonly Tally[], offset: number): string | undefined {
  return tallies
    .filter(({ start, position }) => start <= offset && offset < position)
    .reduce<Tally | undefined>((last, each) => (last && last.start > each.start ? last : each), undefined)?.id
}

test('property: whatever processes, commits and offsets do, audit, statistics and `why` count the tallies whose commits stand', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80, size: 'max' }), fc.boolean(), (steps, isFollowed) => {
      const world = new World(isFollowed)
      for (const each of steps) world.do(each)
      world.end()
      const standing = world.standing()
      const { ids, faults } = auditOf(world)
      const chained = world.chain().map(({ id }) => id)
      assert.deepEqual(ids, chained)
      if (standing.length === chained.length) assert.deepEqual(faults, [], 'nobody has set offsets')
      const counts = (id: string) => Number(standing.some((each) => each.id === id))
      for (const { id } of world.log) assert.equal(world.folded.timesOf(id), counts(id), id)
      const end = Math.max(...world.log.map(({ position }) => position))
      for (let offset = 0; offset < end; offset++)
        assert.equal(
          world.indexed.tallyAt(offset, world.committed.tip),
          lastCovering(standing, offset),
          `offset ${offset}`,
        )
      world.indexed.close()
    }),
    { numRuns: 200 },
  )
})
