import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answerKinds, type AnswerKind } from '../load/answers.ts'
import { orderedSource, slots } from '../load/destinations.ts'
import { userOf } from '../load/load.ts'
import { Traffic } from '../load/traffic.ts'
import { emptyColumns, type Evidence } from './evidence.ts'
import { Findings } from './findings.ts'
import { judgeOrder } from './order-verdict.ts'

const slot = slots.findIndex(({ destination }) => destination.order === 'strict')
const traffic = new Traffic(1, { httpShare: 1, only: orderedSource })
/** Two calls of one user, the second behind the first. */
const [one, two] = [0, 1] as const
const users = 4

type Happened =
  | { seq: number; at: number; answer: AnswerKind }
  | { seq: number; at: number; dead: true }
  | { seq: number; at: number; tier: '1s' | 'strict' }

/** What the verdict finds where this happened, in the order in which it did. */
function found(
  happened: readonly Happened[],
  { partitions = [[0], [0]], clock = false }: { partitions?: readonly number[][]; clock?: boolean } = {},
) {
  const { arrivals, retryRecords, deadLetters } = emptyColumns()
  const none = { attempts: 0, timesScheduled: 0, firstAttemptAt: 0, firstScheduledAt: 0, partition: 0 }
  for (const each of happened) {
    const delivery = each.seq * slots.length + slot
    const { at } = each
    if ('answer' in each)
      arrivals.push({
        ...{ delivery, at, url: 0, readAt: at, sender: 1, body: 1 },
        answer: answerKinds.indexOf(each.answer),
      })
    else if ('dead' in each) deadLetters.push({ ...none, delivery, at, reason: 0, failedAt: at })
    else
      retryRecords.push({
        ...{ ...none, delivery, at, offset: 0, scheduledAt: at, notBefore: -1, urls: 1, again: 0 },
        topic: each.tier === 'strict' ? 0 : 1,
      })
  }
  const evidence = {
    ...{ arrivals, retryRecords, deadLetters },
    calls: [one, two].map((seq) => partitions[seq]!.map((partition) => ({ partition, offset: seq, at: 0 }))),
    tierTopics: [
      { topic: 'strict', delayMs: 0, isStrict: true },
      { topic: '1s', delayMs: 1_000, isStrict: false },
    ],
  } as unknown as Evidence
  const groups = {
    arrivals: arrivals.groupBy('delivery', users * slots.length),
    retryRecords: retryRecords.groupBy('delivery', users * slots.length),
    deadLetters: deadLetters.groupBy('delivery', users * slots.length),
  }
  const findings = new Findings()
  const questions = { findings, dossierOf: () => [], hadClockFarOff: () => clock }
  const tally = judgeOrder(evidence, groups, traffic, questions)
  return { tally, kinds: Object.keys(findings.toJSON()) }
}

test('a call that is taken before an earlier one of its user is a finding', () => {
  assert.equal(userOf(one, orderedSource), userOf(two, orderedSource))
  const { tally, kinds } = found([
    { seq: one, at: 10, answer: 'status503' },
    { seq: two, at: 20, answer: 'ok' },
    { seq: one, at: 30, answer: 'ok' },
  ])
  assert.deepEqual(kinds, ['order that was not kept'])
  assert.deepEqual(tally, { taken: 2, behindFailures: 1, parked: 0 })
  assert.deepEqual(found([{ seq: two, at: 20, answer: 'ok' }]).kinds, ['order that was not kept'])
})

test('a call may follow one that was taken or is dead, and what is taken once more may come at any time', () => {
  const inOrder = found([
    { seq: one, at: 10, answer: 'status503' },
    { seq: one, at: 11, tier: 'strict' },
    { seq: two, at: 12, tier: 'strict' },
    { seq: one, at: 20, answer: 'ok' },
    { seq: two, at: 30, answer: 'ok' },
    { seq: one, at: 40, answer: 'ok' },
  ])
  assert.deepEqual(inOrder, { tally: { taken: 2, behindFailures: 1, parked: 2 }, kinds: [] })
  const afterTheEnd = found([
    { seq: one, at: 10, dead: true },
    { seq: two, at: 20, answer: 'ok' },
  ])
  assert.deepEqual(afterTheEnd.kinds, [])
  const beforeTheEnd = found([
    { seq: one, at: 30, dead: true },
    { seq: two, at: 20, answer: 'ok' },
  ])
  assert.deepEqual(beforeTheEnd.kinds, ['order that was not kept'])
})

test('no call is let go unless a clock was far off', () => {
  const happened: Happened[] = [
    { seq: one, at: 10, tier: '1s' },
    { seq: two, at: 20, answer: 'ok' },
  ]
  assert.deepEqual(found(happened).kinds, ['let go by those behind it'])
  assert.deepEqual(found(happened, { clock: true }).kinds, [])
})

test('calls of different partitions have no order, also where one of them lies in both', () => {
  const happened: Happened[] = [
    { seq: two, at: 20, answer: 'ok' },
    { seq: one, at: 30, answer: 'ok' },
  ]
  const kinds = (partitions: readonly number[][]) => found(happened, { partitions }).kinds
  assert.deepEqual(kinds([[0], [1]]), [])
  assert.deepEqual(kinds([[0], [0, 1]]), [])
  assert.deepEqual(kinds([[0, 1], [0]]), ['order that was not kept'])
})
