// The audit against a world of two partitions of calls, a tier and dead letters, whose processes crash, lose their
// partitions, and get their commits acknowledged or not. What forwarders record is recorded by the forwarder's own code.
import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import fc from 'fast-check'
import type { AuditReport } from '../../../src/core/ledger/audit-report.ts'
import { Audit, type PublishedRecord } from '../../../src/core/ledger/audit.ts'
import { dispositionLabels, type DispositionLabel } from '../../../src/core/ledger/delivery-event.ts'
import { isInRuns, uniteRuns, decodeFinished, tallyIdOf } from '../../../src/core/offsets/offset-runs.ts'
import { GroupConsumer } from '../../../src/forwarder/consume/group-consumer.ts'
import type { AssignedPartition, RecordProgress } from '../../../src/forwarder/consume/assigned-partition.ts'
import type { PartitionCommit } from '../../../src/forwarder/consume/record-source.ts'
import { FakeSource, FakeTallies, quiet, record, fetched } from '../../forwarder/fakes.ts'

type Fate = 'acknowledged' | 'answer lost' | 'refused'

type Step =
  | { kind: 'produce'; partition: number; plans: (readonly (string | null)[])[] }
  | { kind: 'take'; partition: number; count: number }
  | { kind: 'finish'; pick: number; label: DispositionLabel; twice: boolean }
  | { kind: 'publish late' }
  | { kind: 'commit'; fate: Fate }
  | { kind: 'stay' | 'break off' | 'crash' }

const places = [
  { topic: 'calls', partition: 0 },
  { topic: 'calls', partition: 1 },
  { topic: 'tier', partition: 2 },
] as const

const planOf = fc.constantFrom<readonly (string | null)[]>(['crm'], ['crm', 'erp'], ['erp'], [null])
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('produce' as const),
      partition: fc.nat(1),
      plans: fc.array(planOf, { maxLength: 6 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('take' as const),
      partition: fc.nat(2),
      count: fc.nat(8),
    }),
  },
  {
    weight: 16,
    arbitrary: fc.record({
      kind: fc.constant('finish' as const),
      pick: fc.nat(30),
      label: fc.constantFrom(...dispositionLabels, 'retried' as const),
      twice: fc.integer({ min: 0, max: 9 }).map((number) => number === 0),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('commit' as const),
      fate: fc.constantFrom<Fate[]>('acknowledged', 'acknowledged', 'answer lost', 'refused'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('stay' as const, 'break off' as const, 'crash' as const, 'publish late' as const),
    }),
  },
)

/** A record that was taken, and those of its destinations of which nothing is known yet. */
interface Taken {
  work: RecordProgress
  open: (string | null)[]
}

type Written = Omit<PublishedRecord, 'topic' | 'partition' | 'offset' | 'repeated'>

class World {
  readonly source = new FakeSource()
  readonly tallies = new FakeTallies()
  /** What lies in Kafka. Of calls and the tier, each record's destinations; offsets without a record are holes. */
  readonly logs = places.map(() => [] as (readonly (string | null)[] | undefined)[])
  readonly retries: (Written & { offset: number })[] = []
  readonly deadLetters: Written[] = []
  readonly committed = new Map<number, PartitionCommit>()
  /** Published by a process that died before the broker had it. */
  #late: (() => void)[] = []
  #fate: Fate = 'acknowledged'
  #consumer: GroupConsumer
  #taken: Taken[] = []
  #members = 0

  constructor() {
    this.source.committedMap = () => Promise.resolve([...this.committed.values()])
    this.source.acknowledges = () => {
      if (this.#fate !== 'refused') {
        for (const commit of this.source.commits.at(-1)!) this.committed.set(commit.partition, commit)
      }
      return Promise.resolve(this.#fate === 'acknowledged')
    }
    this.#consumer = this.#process()
  }

  #process(): GroupConsumer {
    const events = { wake() {}, lost() {}, resumed() {}, flush: () => Promise.resolve(), offsetsLost() {} }
    return new GroupConsumer(this.source, events, this.tallies, quiet)
  }

  async own(continued: boolean): Promise<void> {
    this.#consumer.assigned([...places], `m/${++this.#members}`, continued)
    await turn()
  }

  #workOf(index: number): AssignedPartition {
    return [...this.#consumer.partitions()].find(({ partition }) => partition === index)!
  }

  /** Each record with a hole behind it now and then, as transactions and compaction leave them. */
  #append(index: number, plan: readonly (string | null)[]): number {
    const log = this.logs[index]!
    const offset = log.push(plan) - 1
    if (offset % 5 === 2) log.push(undefined)
    return offset
  }

  #fetch(index: number): void {
    const work = this.#workOf(index)
    const [from, to] = [work.reading.next!, this.logs[index]!.length]
    if (from >= to) return
    const offsets = Array.from({ length: to - from }, (_, ahead) => from + ahead)
    const records = offsets.filter((offset) => this.logs[index]![offset]).map((offset) => record(offset))
    this.#consumer.fetched(work.topic, index, { records: fetched(records), from, to })
  }

  async do(step: Step): Promise<void> {
    switch (step.kind) {
      case 'produce':
        for (const plan of step.plans) this.#append(step.partition, plan)
        return
      case 'take': {
        this.#fetch(step.partition)
        const partition = this.#workOf(step.partition)
        for (let left = Math.min(step.count, partition.buffered); left > 0; left--) {
          const work = partition.next()
          const open = [...this.logs[step.partition]![work.offset]!]
          work.remaining = open.length
          this.#taken.push({ work, open })
        }
        return
      }
      case 'finish':
        return this.#finish(step)
      case 'commit':
        this.#fate = step.fate
        return this.#consumer.commit()
      case 'stay':
        return this.own(true)
      case 'break off':
        this.#consumer.lost()
        return this.own(false)
      case 'crash':
        // What it was about to publish may still be in flight to the broker.
        for (const { work, open } of this.#taken)
          if (open[0] !== null && work.offset % 3 === 0)
            this.#late.push(() => this.#publish(work, open[0]!, 'retried'))
        this.#taken = []
        this.#consumer = this.#process()
        return this.own(false)
      case 'publish late':
        this.#late.shift()?.()
    }
  }

  #finish({ pick, label, twice }: Extract<Step, { kind: 'finish' }>): void {
    const index = pick % Math.max(1, this.#taken.length)
    const taken = this.#taken[index]
    if (!taken) return
    const { work, open } = taken
    const destination = open.pop()!
    if (open.length === 0) this.#taken.splice(index, 1)
    // Records without a receiver, and records that are not calls, have no destination.
    const becomes = destination !== null ? label : label === 'dead_lettered' ? label : 'skipped'
    if (becomes === 'retried' || becomes === 'deferred' || becomes === 'dead_lettered') {
      this.#publish(work, destination, becomes)
      // A producer that got no answer writes again what was there already.
      if (twice) this.#publish(work, destination, becomes)
    }
    work.finishOne(this.tallies.codes.code(destination, becomes))
  }

  #publish(work: RecordProgress, destinationId: string | null, label: DispositionLabel): void {
    const { topic, partition } = work.partition
    const written: Written = {
      from: { topic, partition, offset: work.offset },
      owner: work.partition.ledger.owner,
      destinationId,
      deliveryId: `${topic}/${partition}/${work.offset}:${destinationId}`,
    }
    if (label === 'dead_lettered') this.deadLetters.push(written)
    else this.retries.push({ ...written, offset: this.#append(2, [destinationId]) })
  }

  /** A dead letter that is sent again, as `dead-letters replay` does. */
  replay(destinationId: string): void {
    const written: Written = { from: null, owner: '', destinationId, deliveryId: 'replayed' }
    this.retries.push({ ...written, offset: this.#append(2, [destinationId]) })
  }

  /** Takes and finishes all that there is. */
  async settle(): Promise<void> {
    while (this.#late.length > 0) await this.do({ kind: 'publish late' })
    const finish = { kind: 'finish', pick: 0, label: 'delivered', twice: false } as const
    for (let round = 0; round < 2; round++) {
      for (const partition of [0, 1, 2]) await this.do({ kind: 'take', partition, count: 10_000 })
      while (this.#taken.length > 0) await this.do(finish)
      for (let times = 0; times < 2; times++) await this.do({ kind: 'commit', fate: 'acknowledged' })
    }
  }

  /**
   * @param since tallies written before are not read
   * @param tier what retention has left of it: offsets, and since when all is there
   */
  audit(since = 0, tier = { low: 0, keptSince: 0 }): AuditReport {
    const audit = new Audit({
      partitions: places.map((place) => {
        const { position = null, metadata = null } = this.committed.get(place.partition) ?? {}
        return { ...place, group: 'group', low: place.topic === 'tier' ? tier.low : 0, position, metadata }
      }),
      isTier: (topic) => topic === 'tier',
      until: Infinity,
      retriesKeptSince: tier.keptSince,
      deadLettersKeptSince: 0,
    })
    for (const [at, { topic, partition, tally }] of this.tallies.tallied.entries())
      if (at >= since) audit.addTally({ topic, partition }, tally, at)
    audit.endTallies()
    for (const index of [0, 1])
      for (const [offset, plan] of this.logs[index]!.entries())
        if (plan) audit.addCall(places[index]!, offset)
    const seen = new Set<string>()
    const published = (place: Pick<PublishedRecord, 'topic' | 'partition' | 'offset'>, written: Written) => {
      const key = JSON.stringify([place.topic, written])
      const repeated = written.from !== null && seen.has(key)
      seen.add(key)
      return { ...written, ...place, repeated }
    }
    for (const { offset, ...written } of this.retries) {
      if (offset < tier.low) continue
      const place = { ...places[2], offset }
      audit.addRetry(place, [published(place, written)])
    }
    for (const [offset, written] of this.deadLetters.entries())
      audit.addDeadLetter(published({ topic: 'dead-letters', partition: 0, offset }, written))
    return audit.report()
  }

  /** How many deliveries the committed calls planned, by destination. */
  planned(): Map<string | null, number> {
    const planned = new Map<string | null, number>()
    for (const index of [0, 1])
      for (const [offset, plan] of this.logs[index]!.entries()) {
        if (!plan || !this.isCommitted(index, offset)) continue
        for (const id of plan) planned.set(id, (planned.get(id) ?? 0) + 1)
      }
    return planned
  }

  isCommitted(index: number, offset: number): boolean {
    const commit = this.committed.get(index)
    if (!commit) return false
    const { position, metadata } = commit
    return isInRuns(uniteRuns([{ start: 0, end: position }], decodeFinished(position, metadata)), offset)
  }

  /** Published records that the chain covers, with their places in the list. */
  facts(list: readonly Written[]): number[] {
    const finishedBy = new Map<string, string>()
    for (const { topic, partition, tally } of this.chain()) {
      const runs = pairs(tally.finished, tally.start)
      for (const { start, end } of runs)
        for (let offset = start; offset < end; offset++) {
          const earlier = tally.earlier.find(({ finished }) => isInRuns(pairs(finished, tally.start), offset))
          finishedBy.set(`${topic}/${partition}/${offset}`, earlier?.owner ?? tally.owner)
        }
    }
    return list.flatMap(({ from, owner }, index) =>
      from && finishedBy.get(`${from.topic}/${from.partition}/${from.offset}`) === owner ? [index] : [],
    )
  }

  /** How far retention may have come in the tier: what came of tallies since then is kept, and what is not finished. */
  removedOfTier(keptSince: number): number {
    const chain = this.chain()
    const talliedAt = ({ topic, partition, offset }: NonNullable<Written['from']>) =>
      this.tallies.tallied.findIndex(
        (each) =>
          each.topic === topic &&
          each.partition === partition &&
          chain.includes(each) &&
          isInRuns(pairs(each.tally.finished, each.tally.start), offset),
      )
    const kept = this.retries.find(({ from, offset }) => {
      const at = from && talliedAt(from)
      return !this.isCommitted(2, offset) || at === -1 || (at !== null && at >= keptSince)
    })
    return kept?.offset ?? this.logs[2]!.length
  }

  /** Tallies that the committed metadata leads back to. */
  chain() {
    return places.flatMap(({ partition }) => {
      const own = this.tallies.tallied.filter((tallied) => tallied.partition === partition)
      const chain: typeof own = []
      let id = tallyIdOf(this.committed.get(partition)?.metadata ?? null)
      while (id !== null) {
        const found = own.find(({ tally }) => tally.id === id)!
        chain.unshift(found)
        id = found.tally.predecessor
      }
      return chain
    })
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

const steps = fc.array(step, { maxLength: 120, size: 'max' })

async function history(all: readonly Step[], after?: (world: World, step: Step) => void): Promise<World> {
  const world = new World()
  await world.own(false)
  for (const each of all) {
    await world.do(each)
    after?.(world, each)
  }
  return world
}

function check(world: World): AuditReport {
  const report = world.audit()
  assert.deepEqual(report.faults, [])
  assert.ok(report.ok, JSON.stringify(report.destinations))
  const planned = report.destinations.filter((line) => line.planned > 0)
  assert.deepEqual(new Map(planned.map((line) => [line.destinationId, line.planned])), world.planned())
  const waiting = report.destinations.reduce((sum, line) => sum + line.waiting, 0)
  const open = world.retries.filter(({ offset }) => !world.isCommitted(2, offset))
  // What a commit that does not exist yet covers waits, but is not counted until it does.
  assert.ok(waiting <= open.length)
  return report
}

test('everything is accounted for at every moment, whatever happens to processes, commits and publications', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const world = await history(all, (at, { kind }) => {
        if (kind !== 'finish' && kind !== 'take') check(at)
      })
      world.replay('crm')
      await world.settle()
      const report = check(world)
      assert.ok(report.destinations.every(({ waiting, ahead }) => waiting === 0 && ahead === 0))
      const again = report.destinations.reduce((sum, { copies }) => sum + copies, 0)
      const facts = world.facts(world.retries)
      const unique = new Set(facts.map((index) => world.retries[index]!.deliveryId))
      assert.equal(again, world.retries.length - 1 - unique.size)
    }),
    { numRuns: 200 },
  )
})

test('everything is accounted for from wherever an audit begins', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.double({ min: 0, max: 1, noNaN: true }), async (all, part) => {
      const world = await history(all)
      for (let times = 0; times < 2; times++) {
        const { ok, faults, destinations } = world.audit(Math.floor(world.tallies.tallied.length * part))
        assert.deepEqual(faults, [])
        assert.ok(ok, JSON.stringify(destinations))
        await world.settle()
      }
    }),
    { numRuns: 200 },
  )
})

test('what retention has removed of a tier leaves no fault, also what a replay had sent or waited there', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.double({ min: 0, max: 1, noNaN: true }), async (all, part) => {
      const world = await history(all, (at, { kind }) => {
        if (kind === 'stay') at.replay('crm')
      })
      const keptSince = Math.floor(world.tallies.tallied.length * part)
      for (let times = 0; times < 2; times++) {
        const low = world.removedOfTier(keptSince)
        const { ok, faults, destinations } = world.audit(0, { low, keptSince })
        assert.deepEqual(faults, [])
        assert.ok(ok, JSON.stringify(destinations))
        await world.settle()
      }
    }),
    { numRuns: 200 },
  )
})

test('anything removed afterwards is reported as missing: a call, a published record, a tally', async () => {
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.constantFrom('call' as const, 'retry' as const, 'dead_letter' as const, 'tally' as const),
      fc.nat(1_000),
      async (all, what, pick) => {
        const world = await history(all)
        await world.settle()
        const offsetOf = { first: 0, last: 0, topic: '', partition: 0 }
        const at = (place: { topic: string; partition: number }, first: number, last = first) =>
          Object.assign(offsetOf, place, { first, last })
        if (what === 'call') {
          const [log] = world.logs
          const found = log!.flatMap((plan, offset) => (plan ? [offset] : []))
          if (found.length === 0) return
          const offset = found[pick % found.length]!
          log![offset] = undefined
          at(places[0], offset)
        } else if (what === 'tally') {
          // Retention may have removed the first one of a chain; one that others repeat is still recorded.
          const chain = world.chain().filter(({ tally }) => tally.predecessor !== null)
          if (chain.length === 0) return
          const { tally, topic, partition } = chain[pick % chain.length]!
          const tallied = world.tallies.tallied
          const index = tallied.findIndex((one) => one.tally.id === tally.id)
          const others = tallied.filter((one, other) => other !== index && one.partition === partition)
          const runs = others.flatMap((one) => pairs(one.tally.finished, one.tally.start))
          const [run] = pairs(tally.finished, tally.start)
          if (!run || runs.some(({ start, end }) => start < run.end && run.start < end)) return
          tallied.splice(index, 1)
          at({ topic, partition }, run.start, run.end - 1)
        } else {
          const list: Written[] = what === 'retry' ? world.retries : world.deadLetters
          const facts = world.facts(list)
          if (facts.length === 0) return
          const index = facts[pick % facts.length]!
          const { from, deliveryId } = list[index]!
          // One of several copies by the same owner is not missed.
          if (list.filter((one) => one.deliveryId === deliveryId && one.from === from).length > 1) return
          if (list.filter((one) => one.deliveryId === deliveryId).length > 1) return
          list.splice(index, 1)
          at(from!, from!.offset)
        }
        const report = world.audit()
        assert.ok(!report.ok)
        const named = report.faults.some(
          ({ topic, partition, first, last }) =>
            topic === offsetOf.topic &&
            partition === offsetOf.partition &&
            first! <= offsetOf.first &&
            (last ?? Infinity) >= offsetOf.last,
        )
        assert.ok(named, JSON.stringify({ what, offsetOf, faults: report.faults }))
      },
    ),
    { numRuns: 200 },
  )
})
