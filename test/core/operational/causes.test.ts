import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CauseLimits, maxCausesAtOnce, type OpenCause } from '../../../src/core/operational/causes.ts'
import { endpointCause, type OperationalEvent } from '../../../src/core/operational/operational-event.ts'
import { sentenceOf } from '../../../src/core/operational/sentence.ts'

const times = { windowMs: 60_000, endMs: 600_000 }
const second = 1_000

let number = 0
const endpoint = (
  name: 'Endpoint Down' | 'Endpoint Recovered',
  id: string,
  urlId = 'u1',
): OperationalEvent => ({
  name,
  identity: `${name}/${id}/${urlId}/${number++}`,
  ...endpointCause('down', id, urlId),
  at: 0,
  properties: { urlId, since: '2026-07-03T09:12:41.007Z' },
})
const down = (id: string, urlId?: string) => endpoint('Endpoint Down', id, urlId)
const recovered = (id: string, urlId?: string) => endpoint('Endpoint Recovered', id, urlId)

const failed = (id: string, reason = 'rejected'): OperationalEvent => ({
  name: 'Deliveries Failed',
  identity: String(number++),
  cause: `dead_letters:${id}:${reason}`,
  at: 0,
  destination: id,
  properties: { reason, count: 1, since: '2026-01-01T00:00:00.000Z', until: '2026-01-01T00:00:00.000Z' },
})

const shown = (events: readonly OperationalEvent[]) =>
  events.map(({ name, destination, ended, more }) => [name, destination, ended, more])

test('what begins is said at once; what flaps after that is one event a minute, which says where it stands', () => {
  const limits = new CauseLimits(times)
  assert.deepEqual(shown(limits.take(down('crm'), 0)), [['Endpoint Down', 'crm', false, 0]])
  for (let each = 1; each <= 9; each++) {
    assert.deepEqual(limits.take(recovered('crm'), each * second), [])
    assert.deepEqual(limits.take(down('crm'), each * second), [])
  }
  assert.deepEqual(limits.due(59_999), [])
  assert.deepEqual(shown(limits.due(60_000)), [['Endpoint Down', 'crm', false, 17]])
  assert.deepEqual(limits.take(recovered('crm'), 61_000), [])
  assert.deepEqual(shown(limits.due(120_000)), [['Endpoint Recovered', 'crm', true, 0]])
  limits.due(180_000)
  assert.deepEqual([...limits.open], [])
})

test('a cause ends with the last of what was so of it', () => {
  const limits = new CauseLimits(times)
  limits.take(down('crm', 'u1'), 0)
  limits.take(down('crm', 'u2'), 1)
  limits.due(60_000)
  const [first] = limits.take(recovered('crm', 'u1'), 120_000)
  assert.equal(first!.ended, false)
  assert.equal(sentenceOf(first!), 'Recovered: crm (u1); others of it are not over')
  const [last] = limits.take(recovered('crm', 'u2'), 180_000)
  assert.equal(last!.ended, true)
})

test('what is counted ends by itself, once, after it has been quiet', () => {
  const limits = new CauseLimits(times)
  for (let each = 0; each < 5; each++) limits.take(failed('crm'), each * second)
  limits.due(60_000)
  limits.take(failed('crm'), 100_000)
  limits.due(160_000)
  assert.deepEqual(limits.due(100_000 + times.endMs - 1), [])
  const [end, ...more] = limits.due(100_000 + times.endMs)
  assert.deepEqual(more, [])
  assert.deepEqual(shown([end!]), [['Problem Ended', 'crm', true, 0]])
  assert.deepEqual(end!.properties, {
    ...{ of: 'Deliveries Failed', reason: 'rejected' },
    ...{ since: '1970-01-01T00:00:00.000Z', until: '1970-01-01T00:01:40.000Z' },
  })
  assert.equal(sentenceOf(end!), 'Over: Deliveries Failed: crm rejected')
  assert.deepEqual(limits.due(10_000_000), [])
})

test('500 destinations that go down at once are eleven events, and their ends no more', () => {
  const limits = new CauseLimits(times)
  const ids = Array.from({ length: 500 }, (_, index) => `d${index}`)
  const began = [...ids.flatMap((id) => limits.take(down(id), 0)), ...limits.due(60_000)]
  assert.equal(began.length, maxCausesAtOnce + 1)
  const many = began.at(-1)!
  assert.deepEqual([many.destination, many.more, many.cause], [null, 489, 'many:Endpoint Down'])
  assert.equal((many.properties.destinations as string[]).length, 20)
  assert.match(sentenceOf(many), /^Down: d10, d11, .* \(and 489 more\)$/)
  const over = [...ids.flatMap((id) => limits.take(recovered(id), 200_000)), ...limits.due(260_000)]
  assert.equal(over.length, maxCausesAtOnce + 2)
  assert.equal(over.filter(({ ended }) => ended).length, maxCausesAtOnce + 1)
  // The first one of many is said at once, and the others with the last.
  assert.deepEqual(
    over.filter(({ cause }) => cause === 'many:Endpoint Down').map(({ ended, more }) => [ended, more]),
    [
      [false, 0],
      [true, 488],
    ],
  )
})

test('an end that nobody was told the beginning of is none', () => {
  const limits = new CauseLimits(times)
  const end: OperationalEvent = { ...down('crm'), name: 'Problem Ended', properties: { of: 'Endpoint Down' } }
  assert.deepEqual(limits.take(end, 0), [])
  limits.take(down('crm'), 1)
  assert.deepEqual(limits.take(end, 2), [])
  assert.deepEqual(shown(limits.due(70_000)), [['Problem Ended', 'crm', true, 0]])
})

test('whatever happens, a cause is said at most once a minute, nothing is left out of the numbers, and the last word is true', () => {
  const step = fc.record({
    wait: fc.nat(40_000),
    id: fc.nat(14),
    urlId: fc.constantFrom('u1', 'u2'),
    isDown: fc.boolean(),
    restarts: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      let limits = new CauseLimits(times)
      let now = 0
      const said: { at: number; event: OperationalEvent }[] = []
      const say = (events: readonly OperationalEvent[]) => {
        for (const event of events) said.push({ at: now, event })
      }
      const isDown = new Set<string>()
      let taken = 0
      for (const { wait, id, urlId, isDown: goesDown, restarts } of steps) {
        now += wait
        if (restarts)
          limits = new CauseLimits(times, JSON.parse(JSON.stringify([...limits.open])) as OpenCause[])
        say(limits.due(now))
        const key = `d${id}/${urlId}`
        if (isDown.has(key) === goesDown) continue
        if (goesDown) isDown.add(key)
        else isDown.delete(key)
        taken++
        say(limits.take(goesDown ? down(`d${id}`, urlId) : recovered(`d${id}`, urlId), now))
      }
      for (let minute = 0; minute < 3; minute++) {
        now += times.windowMs
        say(limits.due(now))
      }
      const byCause = Map.groupBy(said, ({ event }) => event.cause)
      for (const all of byCause.values())
        for (const [index, { at }] of all.entries())
          assert.ok(index === 0 || at >= all[index - 1]!.at + times.windowMs, 'twice a minute')
      assert.equal(
        said.reduce((total, { event }) => total + 1 + event.more!, 0),
        taken,
      )
      const isOpen = [...byCause.values()].some((all) => all.at(-1)!.event.ended === false)
      assert.equal(isOpen, isDown.size > 0)
      assert.equal(new Set(said.map(({ event }) => event.identity)).size, said.length)
    }),
    { numRuns: 200 },
  )
})
