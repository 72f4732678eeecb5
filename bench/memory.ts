import { setTimeout as delay } from 'node:timers/promises'
import { Child } from './child.ts'
import { nthCall } from './calls.ts'
import { deploy, measuredCore, otherCore } from './rig.ts'
import type { Workload } from './workload.ts'

const users = 50_000
const warmUp = 200_000

/** The forwarder's memory along a long backlog. */
export const memory: Workload = {
  name: 'memory',
  summary: 'resident memory at the end of a backlog, beside that after its first 200,000 calls',
  async run(servers, { calls = 2_000_000 }) {
    const deployment = await deploy(servers)
    const receiver = new Child('./receiver.ts', { core: otherCore })
    const { port } = await receiver.told('listening')
    await deployment.destination('crm', 'shop', [`http://127.0.0.1:${port}/hook`])
    await deployment.produce(calls, (index) => nthCall(index, users), 'memory')
    await deployment.close()
    await receiver.ask({ expect: calls }, 'ready')
    let finished = false
    const done = receiver.told('done').then((told) => ((finished = true), told))
    const child = new Child('./forwarding.ts', { core: measuredCore, env: deployment.env })
    await child.told('listening')
    const samples: { count: number; rssMb: number }[] = []
    while (!finished) {
      const { count } = await receiver.ask({ progress: true }, 'progress')
      const { rssMb } = await child.ask({}, 'usage')
      samples.push({ count: count!, rssMb: Math.round(rssMb!) })
      await Promise.race([delay(500), done])
    }
    const { elapsedMs } = await done
    samples.push({ count: calls, rssMb: Math.round((await child.ask({}, 'usage')).rssMb!) })
    await Promise.all([child.end(), receiver.end()])
    const early = samples.find(({ count }) => count >= warmUp) ?? samples[0]!
    const last = samples[samples.length - 1]!
    return {
      rows: [
        { what: `after ${early.count} calls`, unit: 'MB', value: early.rssMb },
        { what: `after ${last.count} calls`, unit: 'MB', value: last.rssMb },
        { what: 'at most', unit: 'MB', value: Math.max(...samples.map(({ rssMb }) => rssMb)) },
      ],
      ratio: null,
      goal: null,
      verdict: null,
      detail: { calls, users, perSecond: Math.round((calls / elapsedMs!) * 1_000), samples },
    }
  },
}
