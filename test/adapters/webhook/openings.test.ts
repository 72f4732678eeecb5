import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ConnectionCounts } from '../../../src/adapters/webhook/connection-counts.ts'
import { TroubledAddresses, type Dial, type Dialed } from '../../../src/adapters/webhook/dial.ts'
import { DirectConnection } from '../../../src/adapters/webhook/direct/direct-connection.ts'
import { HeadTemplate } from '../../../src/adapters/webhook/head-template.ts'
import { Openings, PollPhase } from '../../../src/adapters/webhook/connection.ts'
import { openedAtOnce, openingPerOrigin, openingWait } from '../../../src/core/pacing/limits.ts'
import { startReceiver } from '../../support/receivers.ts'
import { openTransport, send } from './transport-under-test.ts'

/** Openings by a clock that stands still unless `pass` moves it. The first is opening for as long as nobody ends it. */
function startOpenings(t: TestContext, timeoutMs = 60_000) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let now = 0
  const openings = new Openings(() => now, timeoutMs)
  return {
    openings,
    /** In ms. */
    pass(time: number): void {
      now += time
      t.mock.timers.tick(time)
    },
  }
}

const someTurns = async (): Promise<void> => {
  for (let turn = 0; turn < openingPerOrigin; turn++) await nextTurn()
}

test('a thousand connections are opened over many turns, a few in each', async (t) => {
  const { openings } = startOpenings(t)
  let opened = 0
  const add = () => {
    const end = openings.add('https://crm.test', () => {
      opened++
      queueMicrotask(() => end())
    })
  }
  for (let index = 0; index < 1_000; index++) add()
  assert.equal(opened, openedAtOnce)
  while (opened < 1_000) {
    const before = opened
    await nextTurn()
    assert.ok(opened > before && opened - before <= openedAtOnce, `${opened - before} in one turn`)
  }
})

test('while many connections of an origin are opening, the next waits until one of them is open', async (t) => {
  const { openings } = startOpenings(t)
  let opened = 0
  const ends = Array.from({ length: openingPerOrigin * 2 }, () =>
    openings.add('https://crm.test', () => opened++),
  )
  await someTurns()
  assert.equal(opened, openingPerOrigin)
  ends[0]!()
  ends[0]!()
  await someTurns()
  assert.equal(opened, openingPerOrigin + 1)
})

test('a connection waits for those that are opening for half a second at most', async (t) => {
  const { openings, pass } = startOpenings(t)
  let opened = 0
  const add = () => openings.add('https://crm.test', () => opened++)
  for (let index = 0; index < openingPerOrigin + 2; index++) add()
  await someTurns()
  pass(openingWait.ms - 1)
  add()
  await someTurns()
  assert.equal(opened, openingPerOrigin)
  pass(1)
  await someTurns()
  assert.equal(opened, openingPerOrigin + 2)
  pass(openingWait.ms)
  await someTurns()
  assert.equal(opened, openingPerOrigin + 3)
})

test('where requests have less time, a connection waits for a tenth of it', async (t) => {
  const { openings, pass } = startOpenings(t, 300)
  let opened = 0
  for (let index = 0; index < openingPerOrigin + 1; index++) openings.add('https://crm.test', () => opened++)
  pass(29)
  await someTurns()
  assert.equal(opened, openingPerOrigin)
  pass(1)
  await someTurns()
  assert.equal(opened, openingPerOrigin + 1)
})

test('another origin does not wait behind the thousand of one', async (t) => {
  const { openings } = startOpenings(t)
  const opened: string[] = []
  for (let index = 0; index < 1_000; index++) openings.add('https://crm.test', () => opened.push('crm'))
  openings.add('https://shop.test', () => opened.push('shop'))
  await nextTurn()
  await nextTurn()
  assert.ok(opened.includes('shop'), `${opened.length} of the other came first`)
  await someTurns()
  openings.add('https://shop.test', () => opened.push('shop'))
  await nextTurn()
  assert.equal(opened.filter((each) => each === 'shop').length, 2)
})

test('an opening that ends before its turn never begins', async (t) => {
  const { openings } = startOpenings(t)
  const opened: number[] = []
  const ends = Array.from({ length: openedAtOnce + 3 }, (_, index) =>
    openings.add('https://crm.test', () => opened.push(index)),
  )
  ends[openedAtOnce + 1]!()
  await someTurns()
  const expected = ends.map((_, index) => index).filter((index) => index !== openedAtOnce + 1)
  assert.deepEqual(opened, expected)
})

/** Connections, each with a request, that connect to nobody: what they are dialed for is in `dialed`. */
function startConnections(openings: Openings) {
  const dialed: Dialed[] = []
  const dial: Dial = (_origin, each) => {
    dialed.push(each)
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
  return { dialed, open }
}

test('a connection that is closed before its turn came connects to nobody', async (t) => {
  const { openings } = startOpenings(t)
  for (let index = 0; index < openedAtOnce; index++) openings.add('https://crm.test', () => {})
  const { dialed, open } = startConnections(openings)
  const [closed, waiting] = [open(), open()]
  closed.destroy()
  await nextTurn()
  await nextTurn()
  assert.equal(dialed.length, 1)
  waiting.destroy()
})

test('a connection that is open makes room for another', async (t) => {
  const { openings } = startOpenings(t)
  const { dialed, open } = startConnections(openings)
  const connections = Array.from({ length: openingPerOrigin + 1 }, open)
  await someTurns()
  assert.equal(dialed.length, openingPerOrigin)
  dialed[0]!.onConnected(new Socket())
  await nextTurn()
  assert.equal(dialed.length, openingPerOrigin + 1)
  for (const each of connections) each.destroy()
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
