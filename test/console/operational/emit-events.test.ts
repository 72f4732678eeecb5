import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { deliveryEvent } from '../../../src/core/ledger/delivery-event.ts'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { noState } from '../../../src/core/operational/operational-fold.ts'
import { PostriderError } from '../../../src/errors.ts'
import {
  emitOperationalEvents,
  type Mails,
  type OperationalCheckpoint,
  type OperationalPorts,
} from '../../../src/operators/operational-events/events.ts'
import { until } from '../../support/until.ts'

/** Each is a cause of its own. */
const loss = (offset: number) =>
  deliveryEvent('lost', 1, { topic: 'calls', partition: offset, firstOffset: offset, lastOffset: offset })

/** A ledger of losses, a group's commits, and what was sent; a console dies at any step, before or after its effect. */
function rig(losses: number, deathsAt: readonly { step: number; isAfter: boolean }[]) {
  let committed: OperationalCheckpoint = {
    positions: [{ topic: 'ledger', partition: 0, offset: 0 }],
    state: noState,
  }
  const sent: string[] = []
  /** Sent before they were committed. */
  const unsafe: string[] = []
  const stop = new AbortController()
  let step = 0
  const orDie = (effect: () => void) => {
    const death = deathsAt.find((each) => each.step === step)
    step++
    if (!death || death.isAfter) effect()
    if (death) throw new Error('killed')
  }
  const ports: OperationalPorts = {
    acquire: async () => ({
      check() {},
      release: async () => {},
      commit: async (checkpoint) => orDie(() => (committed = structuredClone(checkpoint))),
    }),
    checkpoint: async () => structuredClone(committed),
    async read(from, fold, flow) {
      let offset = from[0]!.offset
      let isClosed = false
      const run = async () => {
        while (!isClosed && offset < losses) {
          await flow.room()
          await new Promise(setImmediate)
          if (isClosed) return
          fold.ledger(loss(offset++), 1, 1)
          flow.wake()
        }
        if (
          offset === losses &&
          committed.positions[0]!.offset === losses &&
          committed.state.unsent.length === 0
        )
          stop.abort()
      }
      void run()
      return {
        positions: () => [{ topic: 'ledger', partition: 0, offset }],
        isSubscribed: () => true,
        ended: new Promise(() => {}),
        close: async () => void (isClosed = true),
      }
    },
    async send(calls) {
      if (committed.state.unsent.length < calls.length)
        unsafe.push(...calls.map(({ messageId }) => messageId))
      orDie(() => sent.push(...calls.map(({ messageId }) => messageId)))
    },
    finishedDeletion: async () => null,
    now: () => 1,
  }
  const times = { windowMs: 1, endMs: 1, quietMs: 1, tickMs: 1, commitMs: 0, retryMs: 1 }
  const log = { info() {}, warn() {} }
  const isDone = () => committed.positions[0]!.offset === losses && committed.state.unsent.length === 0
  const watch = setInterval(() => isDone() && stop.abort(), 1)
  const run = emitOperationalEvents({
    ports,
    mails: null,
    times,
    consoleUrl: null,
    log,
    signal: stop.signal,
  }).finally(() => clearInterval(watch))
  return { run, sent, unsafe }
}

test('whenever consoles die, each event is sent, and always under its one messageId, in order', async () => {
  const deaths = fc.array(fc.record({ step: fc.nat(30), isAfter: fc.boolean() }), { maxLength: 6 })
  const undisturbed = rig(8, [])
  await undisturbed.run
  assert.equal(new Set(undisturbed.sent).size, 8)
  await fc.assert(
    fc.asyncProperty(deaths, async (deathsAt) => {
      const { run, sent } = rig(8, deathsAt)
      await run
      assert.deepEqual([...new Set(sent)], [...new Set(undisturbed.sent)])
    }),
    { numRuns: 100 },
  )
})

test('nothing is sent before what is to be sent is committed', async () => {
  const { run, sent, unsafe } = rig(8, [
    { step: 0, isAfter: false },
    { step: 3, isAfter: true },
  ])
  await run
  assert.equal(new Set(sent).size, 8)
  assert.deepEqual(unsafe, [])
})

test('a console that does not get the lease sends nothing, and asks again', async () => {
  const stop = new AbortController()
  const warnings: string[] = []
  let asked = 0
  const ports = {
    async acquire() {
      if (++asked === 3) stop.abort()
      throw new PostriderError('conflict', 'sending operational events is running elsewhere')
    },
  } as unknown as OperationalPorts
  const times = { windowMs: 1, endMs: 1, quietMs: 1, tickMs: 1, commitMs: 1, retryMs: 1 }
  const log = { info() {}, warn: (message: string) => void warnings.push(message) }
  await emitOperationalEvents({ ports, mails: null, times, consoleUrl: null, log, signal: stop.signal })
  assert.deepEqual([asked, warnings], [3, []])
})

test('what was not mailed is mailed by the console that takes over', async () => {
  const { ports, isRead, committed } = mailRig()
  const first = mailsOf()
  await emitUntil(ports, first.mails, () => isRead())
  assert.equal(first.added.length, 3)
  assert.equal(committed().state.mails.length, 3)
  const second = mailsOf()
  await emitUntil(ports, second.mails, () => second.added.length >= 3)
  assert.deepEqual(second.added, first.added)
})

/** Nobody has subscribed: what happens is mailed all the same. */
function mailRig() {
  let committed: OperationalCheckpoint = {
    positions: [{ topic: 'ledger', partition: 0, offset: 0 }],
    state: noState,
  }
  const isRead = () => committed.positions[0]!.offset === 3 && committed.state.unsent.length === 0
  const ports: OperationalPorts = {
    acquire: async () => ({
      check() {},
      release: async () => {},
      commit: async (checkpoint) => void (committed = structuredClone(checkpoint)),
    }),
    checkpoint: async () => structuredClone(committed),
    async read(from, fold, flow) {
      let offset = from[0]!.offset
      for (; offset < 3; offset++) fold.ledger(loss(offset), 1, 1)
      flow.wake()
      return {
        positions: () => [{ topic: 'ledger', partition: 0, offset }],
        isSubscribed: () => false,
        ended: new Promise(() => {}),
        close: async () => {},
      }
    },
    send: () => Promise.reject(new Error('nobody has subscribed')),
    finishedDeletion: async () => null,
    now: () => 1,
  }
  return { ports, isRead, committed: () => committed }
}

/** A mail server that is away. */
function mailsOf() {
  const calls: AnalyticsCall[] = []
  const mails: Mails = {
    add: (given) => calls.push(...given) > 0,
    get waiting() {
      return calls
    },
  }
  return {
    mails,
    get added() {
      return calls.map(({ messageId }) => messageId)
    },
  }
}

async function emitUntil(ports: OperationalPorts, mails: Mails, isDone: () => boolean): Promise<void> {
  const stop = new AbortController()
  const times = { windowMs: 1, endMs: 1_000, quietMs: 1, tickMs: 1, commitMs: 0, retryMs: 1 }
  const log = { info() {}, warn() {} }
  const ended = emitOperationalEvents({ ports, times, mails, consoleUrl: null, log, signal: stop.signal })
  await until(isDone)
  stop.abort()
  await ended
}
