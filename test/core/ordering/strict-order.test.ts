import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { BlockedLines } from '../../../src/core/ordering/blocked-lines.ts'
import { ParkedLines, type Parked } from '../../../src/core/ordering/parked-lines.ts'

interface Call {
  line: string
  number: number
}

interface ParkedCall extends Parked<ParkedCall> {
  call: Call
}

/** What happens next, in a world of two processes that know of each other only what lies in Kafka. */
const events = ['plan', 'acknowledge', 'read', 'end', 'commit', 'look', 'calls_die', 'parked_dies'] as const

/**
 * A process that sends calls for the first time and one that sends parked calls, each of which dies now and then. A call is
 * attempted only when those before it have ended: that is what the test is about.
 */
class World {
  readonly calls: Call[]
  /** The topic of parked calls. */
  readonly log: Call[] = []
  /** Of that topic, what its reader has finished, and what of that is committed. */
  finished = new Set<number>()
  committed = new Set<number>()
  /** Of the calls, what is finished, and up to where that is committed. */
  done = new Set<number>()
  position = 0
  next = 0
  blocked = new BlockedLines()
  /** On their way to the topic, in order. */
  onWay: { at: number; call: Call }[] = []
  parked = new ParkedLines<ParkedCall>()
  read = 0
  readonly ended = new Set<Call>()
  now = 0
  readonly fails: () => boolean

  constructor(calls: Call[], fails: () => boolean) {
    this.calls = calls
    this.fails = fails
  }

  step(event: (typeof events)[number], choice: number): void {
    this.now++
    switch (event) {
      case 'plan': {
        const call = this.calls[this.next]
        if (!call) return
        const at = this.next++
        if (this.blocked.has(call.line)) this.park(at, call)
        else if (this.attempt(call)) this.done.add(at)
        else this.park(at, call)
        return
      }
      case 'acknowledge': {
        const first = this.onWay.shift()
        if (!first) return
        this.log.push(first.call)
        this.blocked.placed(first.call.line, 0, this.log.length - 1)
        this.done.add(first.at)
        return
      }
      case 'read': {
        const offset = this.read
        const call = this.log[offset]
        if (!call) return
        this.read++
        if (this.committed.has(offset)) return
        const of = { line: call.line, destinationId: 'crm', offset, call }
        this.parked.add({ ...of, isQueued: false, next: null })
        return
      }
      case 'end': {
        const heads = [...this.parked.heads()]
        const head = heads[choice % Math.max(1, heads.length)]
        if (!head || !this.attempt(head.call)) return
        this.finished.add(head.offset)
        this.parked.ended(head)
        return
      }
      case 'commit':
        this.committed = new Set(this.finished)
        while (this.done.has(this.position)) this.position++
        return
      case 'look': {
        const committed = this.committed
        this.blocked.free((_, offset) => committed.has(offset), this.now)
        return
      }
      case 'calls_die':
        this.next = this.position
        this.onWay = []
        this.blocked = new BlockedLines()
        this.log.forEach(({ line }, offset) => {
          if (!this.committed.has(offset)) this.blocked.found(line, 0, offset)
        })
        return
      case 'parked_dies':
        this.finished = new Set(this.committed)
        this.parked = new ParkedLines()
        this.read = 0
    }
  }

  park(at: number, call: Call): void {
    this.blocked.opened(call.line)
    this.onWay.push({ at, call })
  }

  /** Whether it succeeds. */
  attempt(call: Call): boolean {
    for (const earlier of this.calls)
      if (earlier.line === call.line && earlier.number < call.number)
        assert.ok(this.ended.has(earlier), `${call.line} ${call.number} before ${earlier.number}`)
    if (this.fails()) return false
    this.ended.add(call)
    return true
  }
}

test('no call is attempted before those of its user before it have ended, whoever dies, and all end', () => {
  const call = fc.record({ line: fc.constantFrom('crm a', 'crm b', 'crm c') })
  const step = fc.tuple(fc.constantFrom(...events), fc.nat(10))
  let attempts = 0
  fc.assert(
    fc.property(
      fc.array(call, { minLength: 1, maxLength: 12 }),
      fc.array(step, { maxLength: 120 }),
      fc.infiniteStream(fc.boolean()),
      (given, steps, fails) => {
        const calls = given.map(({ line }, number) => ({ line, number }))
        const world = new World(calls, () => {
          attempts++
          return fails.next().value as boolean
        })
        for (const [event, choice] of steps) world.step(event, choice)
        // Nobody dies any more, and what is tried succeeds in the end.
        for (let turn = 0; turn < 200; turn++)
          for (const event of ['plan', 'acknowledge', 'read', 'end', 'commit', 'look'] as const)
            world.step(event, turn)
        assert.equal(world.ended.size, calls.length)
        assert.equal(world.blocked.size, 0)
        assert.equal(world.parked.count, 0)
      },
    ),
    { numRuns: 1_000 },
  )
  assert.ok(attempts > 10_000)
})

test('a call whose place the broker did not say keeps its line blocked until all that lay before the end has ended', () => {
  const lines = new BlockedLines()
  lines.opened('crm a')
  lines.placed('crm a', 3, null)
  assert.deepEqual(
    lines.free(() => true, 0),
    [],
  )
  assert.ok(lines.hasUnknown)
  lines.endsAre(new Map([[3, 8]]))
  assert.deepEqual(
    lines.free((partition, offset) => partition === 3 && offset < 7, 0),
    [],
  )
  assert.deepEqual(
    lines.free((_, offset) => offset <= 7, 0),
    ['crm a'],
  )
})

test('a line that makes progress is drained, and one on which nothing ends is not', () => {
  const lines = new BlockedLines()
  for (const offset of [1, 2]) lines.found('crm a', 0, offset)
  lines.found('crm b', 0, 3)
  assert.ok(!lines.isDraining('crm a', 10_000), 'nothing of it has ended yet')
  lines.free((_, offset) => offset === 1, 10_000)
  assert.ok(lines.isDraining('crm a', 11_000))
  assert.ok(!lines.isDraining('crm b', 11_000))
  assert.ok(!lines.isDraining('crm a', 13_000), 'for long nothing has ended')
  lines.opened('crm a')
  assert.ok(!lines.isDraining('crm a', 11_000), 'one is on its way to be parked')
})

test('where there are too many, the oldest of the destination that has most are let go first', () => {
  const lines = new ParkedLines<ParkedCall>()
  const add = (destinationId: string, key: string, offset: number) =>
    lines.add({
      ...{ line: `${destinationId} ${key}`, destinationId, offset, isQueued: false, next: null },
      call: { line: key, number: offset },
    })
  add('bi', 'a', 1)
  for (let offset = 2; offset < 10; offset++) add('crm', offset % 2 ? 'odd' : 'even', offset)
  const offsets = (most: number, before: number) => lines.crowding(most, before).map(({ offset }) => offset)
  assert.deepEqual(offsets(10, -Infinity), [2, 3])
  assert.deepEqual(offsets(1, -Infinity), [2])
  assert.deepEqual(offsets(10, 2), [1, 2, 3])
})

test('a line is soon free where its last calls are ending, and not while many are left, or none ends any more', () => {
  const lines = new BlockedLines()
  for (let offset = 0; offset < 1_000; offset++) lines.found('crm u', 0, offset)
  let now = 0
  const ended = (count: number, ms: number) => {
    now += ms
    lines.free((_, offset) => offset < count, now)
    return lines.isDraining('crm u', now)
  }
  assert.equal(ended(1, 0), false)
  // One a second: it takes as long as there are calls.
  assert.equal(ended(2, 1_000), false)
  assert.equal(ended(980, 1_000), true, '20 are left, of which a thousand ended in a second')
  assert.equal(ended(981, 1_000), false, '19 are left, and one takes a second')
  assert.equal(ended(990, 1_000), true)
  now += 2_000
  assert.equal(lines.isDraining('crm u', now), false)
  lines.opened('crm u')
  assert.equal(ended(999, 1_000), false, 'another one is on its way there')
})
