import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  deliveryEvent,
  type DeliveryEvent,
  type DispositionLabel,
} from '../../../src/core/ledger/delivery-event.ts'
import { outcomeKinds } from '../../../src/core/delivery/outcome.ts'
import { noTally } from '../../../src/core/ledger/result-codes.ts'
import type { Tally } from '../../../src/core/ledger/tally.ts'
import { RollupFold, type RollupDelta, type RollupState } from '../../../src/core/statistics/rollup-fold.ts'
import {
  addRollup,
  subjectKey,
  type RollupCounts,
  quantileOf,
  maxPoints,
  pointsOf,
} from '../../../src/core/statistics/rollup.ts'
import { answersOf, attemptFiguresOf, destinationFiguresOf } from '../../../src/core/statistics/views.ts'

const groups = { calls: 'group', retries: 'group.retries', replays: 'retry.replay' }
const crm = subjectKey({ kind: 'destination', id: 'crm' })
const shop = subjectKey({ kind: 'source', id: 'shop' })

const tally = (id: string, predecessor: string | null, given: Partial<Tally> = {}): DeliveryEvent =>
  deliveryEvent('tally', 60_000, {
    topic: 'calls',
    partition: 0,
    tally: {
      ...{ id, predecessor, group: 'group', start: 0, position: 1, before: [], finished: [0, 1], lost: [] },
      ...{ records: 1, owner: 'm/1', earlier: [], held: [] },
      counts: [{ ...noTally('crm'), delivered: 1 }],
      ...given,
    },
  })

const collected = (sequence: number): DeliveryEvent =>
  deliveryEvent('collected', 60_000, {
    sourceId: 'shop',
    collected: {
      ...{ instance: 'i', sequence, from: 50_000, to: 60_000, refusals: [] },
      types: [{ type: 'track', accepted: 1, duplicate: 0, refused: 0, flagged: 0 }],
    },
  })

type Saved = [chains: [string, unknown][], summaries: [string, unknown][]]

/** As a file does it: a fold ends with what it has written down, and another one goes on from there. */
class Restarts {
  readonly sums = new Map<string, RollupCounts>()
  #saved: Saved = [[], []]
  fold = new RollupFold(groups, { chains: new Map(), summaries: new Map() })

  restart(): void {
    this.#write(this.fold.take())
    const [chains, summaries] = JSON.parse(JSON.stringify(this.#saved)) as Saved
    const state = { chains: new Map(chains), summaries: new Map(summaries) } as RollupState
    this.fold = new RollupFold(groups, state)
  }

  #write({ counts, chains, summaries }: RollupDelta): void {
    for (const [subject, minutes] of counts) {
      const sum = this.sums.get(subject) ?? {}
      for (const each of minutes.values()) addRollup(sum, each)
      this.sums.set(subject, sum)
    }
    this.#saved = [
      [...new Map([...this.#saved[0], ...chains])],
      [...new Map([...this.#saved[1], ...summaries])],
    ]
  }
}

function sumsOf(
  events: readonly DeliveryEvent[],
  tip: string | null,
  isEnd: (index: number) => boolean = () => false,
) {
  const restarts = new Restarts()
  for (const [index, event] of events.entries()) {
    restarts.fold.add(event, 60_000)
    if (isEnd(index)) restarts.restart()
  }
  if (tip !== null) restarts.fold.confirm({ group: 'group', topic: 'calls', partition: 0 }, tip)
  restarts.restart()
  return restarts.sums
}

const delivered = (events: readonly DeliveryEvent[], tip: string | null): number =>
  sumsOf(events, tip).get(crm)?.delivered ?? 0

test('a delivery is a dead letter until it comes to another end, and a delete call is told apart', () => {
  const fold = new RollupFold(groups, { chains: new Map(), summaries: new Map() })
  const ended = (deliveryId: string, disposition: DispositionLabel, given: Partial<DeliveryEvent> = {}) =>
    fold.add(
      deliveryEvent('disposition', 60_000, {
        ...{ deliveryId, destinationId: 'crm', messageId: deliveryId, disposition, reason: 'rejected' },
        ...given,
      }),
      60_000,
    )
  ended('a', 'dead_lettered')
  ended('b', 'dead_lettered', { messageId: 'delete-1-x', callType: 'delete' })
  ended('c', 'dead_lettered')
  ended('d', 'dead_lettered', { destinationId: null })
  // A replay that is not over yet changes nothing.
  ended('a', 'retried')
  ended('c', 'delivered')
  const dead = { destinationId: 'crm', reason: 'rejected', at: 60_000 }
  assert.deepEqual(
    [...fold.take().dead],
    [
      ['a', { ...dead, isDelete: false }],
      ['b', { ...dead, isDelete: true }],
      ['c', null],
    ],
  )
})

test('a tally counts once another one names it, or the committed metadata does', () => {
  const two = [tally('a', null), tally('b', 'a')]
  assert.equal(delivered(two, null), 1)
  assert.equal(delivered(two, 'b'), 2)
  assert.equal(delivered(two, 'a'), 1, 'metadata that was read before b was committed')
  assert.equal(delivered([tally('b', 'a')], 'b'), 1, 'the ledger begins in the middle')
})

test('tallies of commits that failed do not count, whoever wrote them', () => {
  const repeated = [tally('a', null), tally('x', 'a'), tally('b', 'a'), tally('c', 'b')]
  assert.equal(delivered(repeated, 'c'), 3)
  const late = [tally('a', null), tally('b', 'a'), tally('c', 'b'), tally('x', 'a'), tally('d', 'c')]
  assert.equal(delivered(late, 'd'), 4, 'x is of a process that had lost the partition')
  assert.equal(delivered([tally('a', null), tally('a', null), tally('b', 'a')], 'b'), 2, 'written twice')
  assert.equal(delivered([tally('a', null), tally('b', 'a', { group: 'others' })], 'a'), 1)
})

test('after somebody set the offsets of the group, what was committed before and after counts', () => {
  const events = [
    ...[tally('a', null), tally('b', 'a')],
    ...[tally('c', null, { start: 500 }), tally('d', 'c', { start: 501 })],
  ]
  assert.equal(delivered(events, 'd'), 4)
})

test('a summary that was written twice counts once', () => {
  const events = [collected(1), collected(2), collected(2), collected(3)]
  assert.deepEqual(sumsOf(events, null).get(shop), { 'accepted/track': 3 })
})

test('deliveries of calls, of replays and of those that came due are counted apart', () => {
  const counts = [{ ...noTally('crm'), delivered: 2, retried: 1 }]
  const events = [tally('a', null, { counts }), tally('b', 'a')]
  assert.equal(sumsOf(events, null).get(crm)!.planned, 3)
  const ofTiers = events.map((event) => ({ ...event, tally: { ...event.tally!, group: 'group.retries' } }))
  assert.deepEqual(sumsOf(ofTiers, null).get(crm), { cameDue: 3, delivered: 2, retried: 1 })
  const ofReplays = ofTiers.map((event) => ({ ...event, topic: groups.replays }))
  assert.deepEqual(sumsOf(ofReplays, null).get(crm), { replayed: 3, delivered: 2, retried: 1 })
})

/** What forwarders do: most commits are made, some fail, and a process that lost the partition commits in vain. */
const histories = fc.array(fc.constantFrom('made', 'made', 'failed', 'late', 'summary', 'twice'), {
  maxLength: 60,
})

test('property: however the ledger is divided among restarts, exactly what was committed counts', () => {
  fc.assert(
    fc.property(histories, fc.infiniteStream(fc.boolean()), (history, ends) => {
      const events: DeliveryEvent[] = []
      const tips: (string | null)[] = [null]
      let [made, summaries] = [0, 0]
      for (const [index, what] of history.entries()) {
        const id = `t${index}`
        const tip = tips.at(-1)!
        if (what === 'made') {
          events.push(tally(id, tip))
          tips.push(id)
          made++
        } else if (what === 'failed') events.push(tally(id, tip))
        else if (what === 'late') events.push(tally(id, tips.at(-2) ?? tip))
        else if (what === 'summary') events.push(collected(++summaries))
        else if (events.length > 0) events.push(events.at(-1)!)
      }
      const whole = sumsOf(events, tips.at(-1)!)
      assert.equal(whole.get(crm)?.delivered ?? 0, made)
      assert.equal(whole.get(shop)?.['accepted/track'] ?? 0, summaries)
      const parts = sumsOf(events, tips.at(-1)!, () => ends.next().value)
      assert.deepEqual(parts, whole)
    }),
    { numRuns: 500 },
  )
})

const now = Date.parse('2026-03-04T10:30:20Z')
const day = 86_400_000

test('a window is divided into whole steps, the last of which holds its end', () => {
  assert.deepEqual(pointsOf({ window: '1h', step: '1m' }, now), {
    span: 'minute',
    from: Date.parse('2026-03-04T09:31:00Z'),
    to: Date.parse('2026-03-04T10:31:00Z'),
    stepMs: 60_000,
  })
  assert.deepEqual(pointsOf({ window: '90d' }, now), {
    span: 'hour',
    from: Date.parse('2026-03-05T00:00:00Z') - 90 * day,
    to: Date.parse('2026-03-05T00:00:00Z'),
    stepMs: day,
  })
})

test('every wrong field of a period is named, and no more points are given than are allowed', () => {
  const faultsOf = (...given: Parameters<typeof pointsOf>) => {
    const points = pointsOf(...given)
    return Array.isArray(points) ? points.map(({ field }) => field) : []
  }
  assert.deepEqual(faultsOf({ window: '91d', step: '90s', until: 'soon' }, now), ['window', 'step', 'until'])
  assert.deepEqual(faultsOf({ window: '1h', step: '7m' }, now), ['step'])
  assert.deepEqual(faultsOf({ window: '1d', step: '1m' }, now), [])
  assert.deepEqual(faultsOf({ window: `${maxPoints + 1}m`, step: '1m' }, now), ['step'])
  assert.deepEqual(faultsOf({ window: '1h', step: '1m', until: '8d' }, now), ['step'])
  assert.deepEqual(faultsOf({ window: '1h', step: '1h', until: '8d' }, now), [])
  assert.deepEqual(faultsOf({ until: '2099-01-01' }, now), ['until'])
})

test('quantiles lie within the bucket that holds them', () => {
  assert.equal(quantileOf(new Array<number>(10).fill(0), 0.5), null)
  assert.equal(quantileOf([100, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0.5), 5)
  assert.equal(quantileOf([98, 0, 0, 0, 2, 0, 0, 0, 0, 0], 0.99), 175)
  assert.equal(quantileOf([0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 0.99), 5_000)
})

test('every attempt is in one class of answers, whichever URL it went to', () => {
  const ends = Object.fromEntries(outcomeKinds.map((kind, index) => [`end/u1/${kind}`, 2 ** index]))
  const counts = { ...ends, 'end/u2/success': 1_000_000, 'end/u2/of_a_later_version': 2_000_000, planned: 7 }
  const answers = answersOf(counts)
  const sum = Object.values(answers).reduce((total, count) => total + count, 0)
  assert.equal(sum, attemptFiguresOf(counts).attempts)
  const of = (...kinds: string[]) => kinds.reduce((total, kind) => total + ends[`end/u1/${kind}`]!, 0)
  assert.equal(answers['2xx'], of('success') + 1_000_000)
  assert.equal(answers['3xx'], of('redirect'))
  assert.equal(answers['4xx'], of('status_4xx', 'status_429', 'gone'))
  assert.equal(answers['5xx'], of('status_5xx'))
})

test('figures of a destination add up over its URLs', () => {
  const figures = destinationFiguresOf({
    ...{ planned: 4, delivered: 3, skipped: 1, 'skipped/not_chosen': 1 },
    ...{ 'end/u2/success': 3, 'end/u10/timeout': 1, 'took/u2/0': 3, 'took/u10/9': 1 },
  })
  assert.deepEqual([figures.attempts, figures.failed, figures.successRate], [4, 1, 0.75])
  assert.deepEqual(figures.skipReasons, { not_chosen: 1 })
  assert.deepEqual(
    figures.urls.map(({ urlId, attempts, failed }) => [urlId, attempts, failed]),
    [
      ['u2', 3, 0],
      ['u10', 1, 1],
    ],
  )
})
