import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Outcome } from '../../../src/core/delivery/outcome.ts'
import { Unrenderable } from '../../../src/core/shape/text-template.ts'
import { startReceiver } from '../../support/receivers.ts'
import { openTransport, requestOf, send, standingClock } from './transport-under-test.ts'

const neverEnds = () => assert.fail('a request that was taken back has no outcome')

test('a request that is withdrawn while its connection opens is never written', async (t) => {
  const receiver = await startReceiver(t)
  const transport = openTransport(t)
  const endpoint = transport.open({ url: receiver.url, headers: {} })
  await new Promise<void>((resolve) => {
    endpoint.send(requestOf(), {
      onOutcome: neverEnds,
      withdraw: () => {
        resolve()
        return true
      },
    })
  })
  assert.equal((await send(endpoint)).kind, 'success')
  assert.equal(receiver.requests.length, 1)
  await transport.close(5_000)
})

test('a request that is not withdrawn is sent on its new connection', async (t) => {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  let asked = 0
  const kind = await new Promise((resolve) => {
    endpoint.send(requestOf(), {
      onOutcome: (outcome) => resolve(outcome.kind),
      withdraw: () => {
        asked++
        return false
      },
    })
  })
  assert.deepEqual([kind, asked, receiver.requests.length], ['success', 1, 1])
})

/** An endpoint whose connection was used once, and ends when the next request is written on it. */
async function usedAndReset(t: TestContext) {
  const receiver = await startReceiver(t)
  const endpoint = openTransport(t).open({ url: receiver.url, headers: {} })
  await send(endpoint)
  receiver.answer({ instead: { do: 'reset' } }, {})
  return { receiver, endpoint }
}

for (const again of [true, false]) {
  test(`a request that was written when its used connection ended is not withdrawn, and goes out again only if it may: ${again}`, async (t) => {
    const { receiver, endpoint } = await usedAndReset(t)
    const asked: string[] = []
    const outcome = await new Promise<Outcome>((resolve) => {
      endpoint.send(requestOf(), {
        onOutcome: resolve,
        withdraw() {
          asked.push('withdraw')
          return asked.length > 1
        },
        sendAgain() {
          asked.push('send again')
          return again
        },
      })
    })
    assert.equal(outcome.kind, again ? 'success' : 'network')
    assert.deepEqual(asked, ['withdraw', 'send again'])
    assert.equal(receiver.requests.length, again ? 3 : 2)
  })
}

test('what was written may go out once more only if it still may when its new connection is there', async (t) => {
  const { receiver, endpoint } = await usedAndReset(t)
  const asked: string[] = []
  const outcome = await new Promise<Outcome>((resolve) => {
    endpoint.send(requestOf(), {
      onOutcome: resolve,
      withdraw: () => false,
      sendAgain: () => asked.push('decided') > 0,
      // Its destination was paused meanwhile.
      mayStillGo: () => asked.push('about to be written') < 0,
    })
  })
  assert.deepEqual([outcome.kind, asked], ['network', ['decided', 'about to be written']])
  assert.equal(receiver.requests.length, 2)
  assert.equal((await send(endpoint)).kind, 'success')
})

test('a request that cannot be made is refused at once, and its deadline tells of it no second time', async (t) => {
  const clock = standingClock(t)
  const receiver = await startReceiver(t)
  const transport = openTransport(t, { timeoutMs: 5_000 })
  const path = { parts: ['/users/', { text: 'call.userId' }] }
  const endpoint = transport.open({ url: receiver.url, headers: {}, path })
  const told: Outcome[] = []
  const onOutcome = (outcome: Outcome) => void told.push(outcome)
  assert.throws(() => endpoint.send(requestOf(), { onOutcome }), Unrenderable)
  assert.ok(endpoint.lacking!(null) instanceof Unrenderable)
  const filled = [{ hole: 'call.userId', value: 'ada' }]
  assert.equal(endpoint.lacking!(filled), null)
  receiver.answer({ instead: { do: 'hang' } })
  const late = send(endpoint, { ...requestOf(), filled })
  await receiver.waitFor(1)
  clock.pass(5_000)
  assert.equal((await late).kind, 'timeout')
  assert.deepEqual(told, [])
  assert.deepEqual(
    receiver.requests.map((request) => request.path),
    ['/users/ada'],
  )
})
