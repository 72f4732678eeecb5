import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ConnectionCounts } from '../../../src/adapters/webhook/connection-counts.ts'
import { TroubledAddresses, type Dial } from '../../../src/adapters/webhook/dial.ts'
import { DirectConnection } from '../../../src/adapters/webhook/direct/direct-connection.ts'
import { HeadTemplate } from '../../../src/adapters/webhook/head-template.ts'
import { Openings, PollPhase } from '../../../src/adapters/webhook/connection.ts'
import { openedAtOnce } from '../../../src/core/pacing/limits.ts'
import { startReceiver } from '../../support/receivers.ts'
import { openTransport, send } from './transport-under-test.ts'

test('a thousand connections are opened over many turns, a few in each', async () => {
  const openings = new Openings()
  let opened = 0
  for (let index = 0; index < 1_000; index++) openings.add('https://crm.test', () => opened++)
  assert.equal(opened, openedAtOnce)
  while (opened < 1_000) {
    const before = opened
    await nextTurn()
    assert.ok(opened > before && opened - before <= openedAtOnce, `${opened - before} in one turn`)
  }
})

test('another origin does not wait behind the thousand of one', async () => {
  const openings = new Openings()
  const opened: string[] = []
  for (let index = 0; index < 1_000; index++) openings.add('https://crm.test', () => opened.push('crm'))
  openings.add('https://shop.test', () => opened.push('shop'))
  await nextTurn()
  await nextTurn()
  assert.ok(opened.includes('shop'), `${opened.length} of the other came first`)
})

test('an opening that is cancelled never begins, and one that has begun cannot be', async () => {
  const openings = new Openings()
  const opened: number[] = []
  const cancels = Array.from({ length: openedAtOnce + 3 }, (_, index) =>
    openings.add('https://crm.test', () => opened.push(index)),
  )
  cancels[0]!()
  cancels[openedAtOnce + 1]!()
  for (let turn = 0; turn < 3; turn++) await nextTurn()
  const expected = cancels.map((_, index) => index).filter((index) => index !== openedAtOnce + 1)
  assert.deepEqual(opened, expected)
})

test('a connection that is closed before its turn came connects to nobody', async () => {
  const openings = new Openings()
  for (let index = 0; index < openedAtOnce; index++) openings.add('https://crm.test', () => {})
  let connects = 0
  const dial: Dial = () => {
    connects++
    return () => {}
  }
  const troubled = new TroubledAddresses(() => 0)
  const ignore = () => {}
  const owner = { session: null, troubled, secureContext: null, onOpens: ignore, onClosed: ignore }
  const parts = { dial, openings, polls: new PollPhase(), steadyNow: () => 0, counts: new ConnectionCounts() }
  const open = () => {
    const connection = new DirectConnection(new URL('https://crm.test'), parts, owner)
    connection.send(new HeadTemplate('POST', '/', [], []), [], Buffer.alloc(0))
    return connection
  }
  const [closed, waiting] = [open(), open()]
  closed.destroy()
  await nextTurn()
  await nextTurn()
  assert.equal(connects, 1)
  waiting.destroy()
})

test('a request that waits for a connection to be opened goes out on one that comes free', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  const count = openedAtOnce * 30
  const outcomes = await Promise.all(Array.from({ length: count }, () => send(endpoint)))
  assert.ok(outcomes.every(({ kind }) => kind === 'success'))
  assert.equal(receiver.requests.length, count)
  assert.ok(receiver.connections() < count, `${receiver.connections()} for ${count} requests`)
})
