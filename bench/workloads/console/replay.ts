import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nthCall } from '../../calls.ts'
import { Child } from '../../child.ts'
import { forward, warmUpOf } from '../../measure/drain.ts'
import { startReceiver } from '../../receiver.ts'
import { deploy, measuredCore, otherCore, type Servers } from '../../rig.ts'
import type { Workload } from '../workload.ts'
import { startConsole } from './console-process.ts'

const users = 10_000

/** A new destination gets the calls of the past, beside a backlog of the same calls. */
export const replay: Workload = {
  name: 'replay',
  summary:
    'a replay of calls to a new destination, one core for the forwarder; reference: the same calls as a backlog',
  sizes: { calls: 200_000 },
  quick: { calls: 10_000 },
  run: async (servers: Servers, { calls: requests = 200_000 }) => {
    const folder = await mkdtemp(join(tmpdir(), 'postrider-bench-'))
    const deployment = await deploy(servers)
    const receiver = startReceiver()
    const { port } = await receiver.reported('listening')
    const url = `http://127.0.0.1:${port}/hook`
    try {
      await deployment.destination('old', 'shop', [url])
      await deployment.produce(requests, (index) => nthCall(index, users), 'backlog')
      const { env } = deployment
      const warmUp = warmUpOf(requests)
      const backlog = await forward({ servers, receiver, requests, warmUp }, env)

      await deployment.destination('new', 'shop', [url])
      await deployment.close()
      const forwarder = new Child('forwarding.ts', { core: measuredCore, env })
      const console = startConsole({ ...env, STORE_PATH: folder }, otherCore)
      try {
        await forwarder.reported('ready')
        await receiver.ask({ expect: requests, warmUp }, 'ready')
        const done = receiver.reported('done')
        const terms = { destinationId: 'new', since: '1h' }
        while ((await console.ask('/replays', terms)) === null)
          await new Promise((resolve) => setTimeout(resolve, 100))
        const { elapsedMs, measured } = await done
        const perSecond = Math.round((measured! / elapsedMs!) * 1_000)
        return {
          rows: [
            { what: 'replay', unit: 'calls/s', value: perSecond },
            { what: 'backlog', unit: 'calls/s', value: backlog.perSecond },
          ],
          ratio: perSecond / backlog.perSecond,
          goal: 0.5,
          verdict: null,
          detail: { calls: requests, replay: perSecond, backlog },
        }
      } finally {
        await Promise.all([forwarder.end(), console.end()])
      }
    } finally {
      await receiver.end()
      await rm(folder, { recursive: true, force: true })
    }
  },
}
