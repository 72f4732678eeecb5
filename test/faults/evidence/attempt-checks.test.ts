import assert from 'node:assert/strict'
import test from 'node:test'
import { answerKinds, type AnswerKind } from '../load/answers.ts'
import { sessionTimeoutMs } from '../rig.ts'
import type { Injected } from '../schedule.ts'
import { wasJustWritten, wasQueuedWithAnother } from './attempt-checks.ts'
import { emptyColumns, type Evidence } from './evidence.ts'

test('of what a forwarder sends after it was frozen, only the first request may be one that it was writing', () => {
  const { arrivals } = emptyColumns()
  const arrive = (at: number, sender: number) =>
    arrivals.push({ ...{ delivery: 0, url: 0, at, readAt: at, sender, answer: 0 }, body: 0 })
  const thawed = 10_000 + sessionTimeoutMs + 2_000
  arrive(9_999, 1)
  arrive(thawed - 500, 2)
  arrive(thawed, 1)
  arrive(thawed, 1)
  arrive(thawed + 1, 1)
  const frozen: Injected = {
    ...{ kind: 'forwarder-frozen', detail: '', step: '', from: 10_000, to: thawed + 4_000 },
  }
  const evidence = { arrivals } as Evidence
  const allowed = (injected: Injected[]) =>
    Array.from({ length: arrivals.length }, (_, row) => wasJustWritten({ evidence, injected }, row))
  assert.deepEqual(allowed([frozen]), [false, true, true, false, false])
  assert.deepEqual(allowed([]), [false, false, false, false, false])
  assert.deepEqual(allowed([{ ...frozen, kind: 'forwarder-stopped' }]), [false, false, false, false, false])
})

test('a request that was queued with another URL’s goes out whenever its URL takes it, once', () => {
  const { arrivals } = emptyColumns()
  const arrive = (at: number, url: number, sender: number, answer: AnswerKind = 'ok') =>
    arrivals.push({
      ...{ delivery: 0, url, at, readAt: at, sender },
      answer: answerKinds.indexOf(answer),
      body: 0,
    })
  arrive(1_000, 1, 7)
  arrive(9_200, 0, 7, 'garbage')
  arrive(9_300, 0, 7)
  arrive(9_400, 0, 7)
  arrive(9_500, 0, 8)
  const rows = Array.from({ length: arrivals.length }, (_, row) => row)
  const queued = (closedAt: number, longestMs: number) =>
    rows.map((index) =>
      wasQueuedWithAnother(arrivals, rows, { index, longestMs, isOpen: (at) => at < closedAt }),
    )
  assert.deepEqual(queued(1_500, 3_000), [false, true, true, false, false])
  assert.deepEqual(queued(900, 3_000), [false, false, false, false, false])
  assert.deepEqual(queued(1_500, 8_450), [false, true, true, true, false])
})
