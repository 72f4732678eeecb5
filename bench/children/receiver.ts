// A receiver on raw sockets, in a process and on a core of its own: it answers 200, at once or after the delay given
// as its first argument, and counts. The second one says on how many ports it listens, one unless given.
import { createServer, type AddressInfo } from 'node:net'
import { monotonicMs } from '../measure/clock.ts'
import { Milestones } from './milestones.ts'
import { delayed, eachRequest, okAnswer } from './requests.ts'

const later = delayed(Number(process.argv[2] ?? 0))
const milestones = new Milestones()

const listen = () =>
  new Promise<number>((resolve) => {
    const server = createServer((socket) => {
      eachRequest(socket, () => {
        milestones.arrived()
        later(() => socket.write(okAnswer))
      })
    })
    // Thousands of connections may come at once.
    server.listen({ port: 0, host: '127.0.0.1', backlog: 8_192 }, () =>
      resolve((server.address() as AddressInfo).port),
    )
  })

process.on('message', (message: { expect?: number; warmUp?: number; progress?: boolean }) => {
  if (message.expect === undefined) {
    process.send!({ kind: 'progress', count: milestones.count, at: monotonicMs() })
  } else {
    milestones.expect(message.expect, message.warmUp)
    process.send!({ kind: 'ready' })
  }
})
process.on('disconnect', () => process.exit())
const ports = await Promise.all(Array.from({ length: Number(process.argv[3] ?? 1) }, listen))
process.send!({ kind: 'listening', port: ports[0], ports })
