import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Outcome } from '../../../src/core/delivery/outcome.ts'
import { createAuthority } from '../../support/secured/certificates.ts'
import { startReceiver, type Answer } from '../../support/receivers.ts'
import { openTransport, requestOf } from './transport-under-test.ts'

/** By turns, whatever a receiver may do, with what may come of it on a fresh or a used connection. */
const weather: [Answer, ...Outcome['kind'][]][] = [
  [{}, 'success'],
  [{ delayMs: 5 }, 'success'],
  [{ headers: { connection: 'close' } }, 'success'],
  [{ status: 500, body: 'x'.repeat(3_000) }, 'status_5xx'],
  [{ instead: { do: 'reset' } }, 'network'],
  [{}, 'success'],
  [{ status: 429, headers: { connection: 'close', 'retry-after': '1' } }, 'status_429'],
  [{ delayMs: 3, instead: { do: 'close' } }, 'network'],
  [{ instead: { do: 'raw', bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc' } }, 'network'],
  [{ instead: { do: 'raw', bytes: 'HTTP/1.1 200 OK\r\n\r\nuntil the end' } }, 'success'],
  [{ instead: { do: 'raw', bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok, and more' } }, 'success'],
  [{ instead: { do: 'raw', bytes: '\u0000\u0001' } }, 'network'],
  [{ body: 'x'.repeat(200_000) }, 'success'],
  [{ instead: { do: 'hang' } }, 'timeout'],
  [{ instead: { do: 'drip', everyMs: 10 } }, 'timeout'],
]

/** Handshakes take this process's time, on both sides: of fewer at once each is done long before an attempt ends. */
const pace = { http: { atOnce: 100, timeoutMs: 4_000 }, https: { atOnce: 50, timeoutMs: 6_000 } }

for (const scheme of ['http', 'https'] as const) {
  test(`each of 450 attempts over ${scheme} ends once, with the outcome of its receiver’s behaviour`, async (t) => {
    const authority = await createAuthority(t)
    const receiver = await startReceiver(t, scheme === 'https' ? { tls: await authority.issue() } : {})
    const { atOnce, timeoutMs } = pace[scheme]
    const transport = openTransport(t, { timeoutMs, ca: authority.ca })
    const endpoint = transport.open({ url: receiver.url, headers: {} })
    // The answer goes by the attempt, not by the order of arrival: a request that is sent again gets the same.
    receiver.answer((request) => weather[(request.json()['n'] as number) % weather.length]![0])
    const total = 450
    const counts = new Array<number>(total).fill(0)
    const wrong: string[] = []
    let started = 0
    await new Promise<void>((resolve) => {
      let ended = 0
      const next = () => {
        if (started === total) return
        const n = started++
        endpoint.send(requestOf(JSON.stringify({ n })), {
          onOutcome(outcome) {
            counts[n]!++
            const [, ...kinds] = weather[n % weather.length]!
            if (!kinds.includes(outcome.kind)) wrong.push(`${n}: ${JSON.stringify(outcome)}`)
            // Partly from within the outcome, partly later.
            if (n % 3 === 0) setImmediate(next)
            else next()
            if (++ended === total) resolve()
          },
        })
      }
      for (let i = 0; i < atOnce; i++) next()
    })
    await transport.close(0)
    assert.deepEqual(wrong.slice(0, 5), [])
    assert.ok(counts.every((count) => count === 1))
  })
}
