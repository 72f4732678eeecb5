import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startReceiver } from '../../support/receivers.ts'
import { openTransport, requestOf, send } from './transport-under-test.ts'

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
