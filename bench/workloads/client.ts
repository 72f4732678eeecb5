import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Child, bindsCores, type ChildReport } from '../child.ts'
import { measuredCore } from '../rig.ts'
import { atMost, type Workload } from './workload.ts'

const maxMicroseconds = 2

/** What a call costs the application that makes it, and what a batch costs on its way. */
export const client: Workload = {
  name: 'client',
  summary:
    'a call taken by the client, by its application’s clock; references: a bare JSON.stringify of the same item, @segment/analytics-node; and a batch by node:http beside fetch',
  sizes: { calls: 100_000, rounds: 3 },
  async run(_servers, sizes) {
    const [calls, rounds] = [sizes.calls!, sizes.rounds!]
    // Answers as a collector does, on the other core.
    const server = createServer((request, response) => {
      request.resume().on('end', () => {
        response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"success":true}')
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const measured: ChildReport[] = []
    for (let round = 0; round < rounds; round++) {
      const child = new Child('client-process.ts', { core: measuredCore })
      await child.reported('listening')
      measured.push(await child.ask({ calls, port }, 'measured'))
      await child.end()
    }
    server.closeAllConnections()
    server.close()
    const row = (what: string, unit: string, key: string) => ({
      what,
      unit,
      value: Math.round(median(measured.map((each) => each[key]!)) * 100) / 100,
    })
    const figure = row('a call taken, median', 'µs', 'clientMedian')
    const reference = row('bare JSON.stringify of its item', 'µs', 'bareMedian')
    return {
      rows: [
        figure,
        row('a call taken, p99', 'µs', 'clientP99'),
        reference,
        row('@segment/analytics-node, median', 'µs', 'segmentMedian'),
        row('@segment/analytics-node, p99', 'µs', 'segmentP99'),
        row('held by a waiting call', 'bytes', 'heldBytes'),
        row('of which its JSON', 'bytes', 'jsonBytes'),
        row('a batch of 20 by node:http', 'µs of CPU', 'httpCpu'),
        row('a batch of 20 by fetch', 'µs of CPU', 'fetchCpu'),
      ],
      ratio: figure.value / reference.value,
      goal: null,
      goals: [atMost('a call taken, median, µs', figure.value, maxMicroseconds)],
      verdict: bindsCores ? null : 'no verdict: processes cannot be bound to cores here (taskset)',
      detail: { calls, measured },
    }
  },
}

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]!
}
