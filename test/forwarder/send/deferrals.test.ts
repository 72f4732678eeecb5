import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { deferredAtOnce } from '../../../src/core/pacing/limits.ts'
import { Deferrals, type Deferring } from '../../../src/forwarder/send/deferrals.ts'

/** A number of deliveries that wait; deferrals are noted under its name. */
class Source implements Deferring {
  readonly #name: string
  readonly #told: string[]
  waiting: number

  constructor(name: string, waiting: number, told: string[]) {
    this.#name = name
    this.waiting = waiting
    this.#told = told
  }

  defer(max: number): number {
    const count = Math.min(max, this.waiting)
    this.waiting -= count
    for (let left = count; left > 0; left--) this.#told.push(this.#name)
    return count
  }
}

test('all endpoints that defer share the limit of each turn, and alternate', async () => {
  const told: string[] = []
  const deferrals = new Deferrals()
  const [one, other] = [new Source('a', 80, told), new Source('b', 40, told)]
  deferrals.begin(one)
  deferrals.begin(other)
  assert.equal(told.length, deferredAtOnce)
  assert.ok(!deferrals.takeOne(), 'who defers by himself has his from the same')
  for (let seen = told.length; seen < 120; seen = told.length) {
    await turn()
    assert.ok(told.length - seen <= deferredAtOnce && told.length > seen, `${told.length - seen} in one turn`)
  }
  assert.ok(told.indexOf('b') < told.lastIndexOf('a') - 30, 'who has more comes after the others')
})

test('an endpoint that has nothing more to defer stops until it begins again', async () => {
  const told: string[] = []
  const deferrals = new Deferrals()
  const source = new Source('a', 2 * deferredAtOnce, told)
  deferrals.begin(source)
  source.waiting = 0
  await turn()
  source.waiting = 5
  for (let turns = 0; turns < 3; turns++) await turn()
  assert.equal(told.length, deferredAtOnce)
  deferrals.begin(source)
  assert.equal(told.length, deferredAtOnce + 5)
})

test('an endpoint that begins while another defers gets its turn, and deferring does not recurse', () => {
  const deferrals = new Deferrals()
  const told: string[] = []
  let depth = 0
  const inner = new Source('inner', 1, told)
  deferrals.begin({
    defer() {
      assert.equal(depth++, 0)
      deferrals.begin(inner)
      assert.deepEqual(told, [])
      depth--
      return 1
    },
  })
  assert.deepEqual(told, ['inner'])
})

test('the limit of deferrals starts over in each turn', async () => {
  const deferrals = new Deferrals()
  for (let turns = 0; turns < 3; turns++) {
    let taken = 0
    while (deferrals.takeOne()) taken++
    assert.equal(taken, deferredAtOnce)
    await turn()
  }
})
