// The reference: a bare `undici.request` loop over the same bodies with the same HMAC, and nothing else. Bodies are
// rendered before the clock starts.
import { createHmac } from 'node:crypto'
import { Pool } from 'undici'
import { renderBody } from '../../src/core/call/body.ts'
import { nthCall, sharedSecret } from '../calls.ts'

interface Order {
  /** They take turns. */
  urls: string[]
  requests: number
  users: number
  inFlight: number
  /** Connections to each origin, at most. */
  connections: number
}

async function run({ urls, requests, users, inFlight, connections }: Order): Promise<void> {
  const bodies = Array.from({ length: Math.min(requests, 100_000) }, (_, index) =>
    renderBody(nthCall(index, users)),
  )
  const pools = new Map<string, Pool>()
  const targets = urls.map((url) => {
    const { origin, pathname } = new URL(url)
    const pool = pools.get(origin) ?? new Pool(origin, { connections })
    pools.set(origin, pool)
    return { pool, pathname }
  })
  let next = 0
  const loop = async () => {
    while (next < requests) {
      const index = next++
      const body = Buffer.from(bodies[index % bodies.length]!)
      const { pool, pathname } = targets[index % targets.length]!
      const response = await pool.request({
        method: 'POST',
        path: pathname,
        headers: {
          'User-Agent': 'postrider/1.0',
          'Content-Type': 'application/json',
          'X-Signature': createHmac('sha1', sharedSecret).update(body).digest('hex'),
          'Idempotency-Key': `bench-${index.toString().padStart(10, '0')}:crm`,
        },
        body,
      })
      await response.body.dump()
    }
  }
  await Promise.all(Array.from({ length: inFlight }, loop))
  await Promise.all([...pools.values()].map((pool) => pool.close()))
}

process.on('message', (order: Order) => void run(order))
process.on('disconnect', () => process.exit())
process.send!({ kind: 'listening' })
