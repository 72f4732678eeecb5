import { setTimeout as delay } from 'node:timers/promises'
import { Child } from '../child.ts'
import { nthCall } from '../calls.ts'
import { watchCpu } from '../measure/cpu.ts'
import { cpuLine, noVerdict } from '../measure/drain.ts'
import { plot } from '../plot.ts'
import { startReceiver } from '../receiver.ts'
import { deploy, measuredCore, otherCore } from '../rig.ts'
import { atMost, type Workload } from './workload.ts'

const users = 50_000
const warmUp = 200_000
const sampleMs = 1_000
const maxMb = 350
const maxSpreadMb = 60

/** The forwarder's memory along a long backlog. */
export const memory: Workload = {
  name: 'memory',
  summary:
    'resident memory along a backlog, after its first 200,000 calls (the goal is for --calls 10000000)',
  sizes: { calls: 2_000_000 },
  quick: { calls: 300_000 },
  async run(servers, sizes) {
    const calls = sizes.calls!
    const deployment = await deploy(servers)
    const receiver = startReceiver()
    const { port } = await receiver.reported('listening')
    await deployment.destination('crm', 'shop', [`http://127.0.0.1:${port}/hook`])
    await deployment.produce(calls, (index) => nthCall(index, users), 'backlog')
    await deployment.close()
    await receiver.ask({ expect: calls }, 'ready')
    let finished = false
    const done = receiver.reported('done').then((reported) => ((finished = true), reported))
    const warm = receiver.reported('warm')
    const child = new Child('forwarding.ts', { core: measuredCore, env: deployment.env })
    await warm
    const pids = {
      forwarder: child.pid,
      receiver: receiver.pid,
      kafka: servers.brokerPid,
      bench: process.pid,
    }
    const watch = await watchCpu(pids, otherCore)
    const samples: (Record<string, number> & { count: number; rssMb: number })[] = []
    const sample = async () => {
      const { count } = await receiver.ask({ progress: true }, 'progress')
      const { kind: _kind, cpuMs: _cpuMs, ...usage } = await child.ask({}, 'usage')
      const rounded = Object.entries(usage).map(([name, value]) => [name, Math.round(Number(value))])
      samples.push({ count: count!, ...Object.fromEntries(rounded) })
    }
    while (!finished) {
      await sample()
      await Promise.race([delay(sampleMs), done])
    }
    const { elapsedMs } = await done
    const use = await watch.end()
    await sample()
    await Promise.all([child.end(), receiver.end()])
    const settled = samples.filter(({ count }) => count >= warmUp).map(({ rssMb }) => rssMb)
    if (settled.length === 0) settled.push(samples.at(-1)!.rssMb)
    const [min, max] = [Math.min(...settled), Math.max(...settled)]
    return {
      rows: [
        { what: `after ${warmUp.toLocaleString('en')} calls`, unit: 'MB', value: settled[0]! },
        { what: `after ${calls.toLocaleString('en')} calls`, unit: 'MB', value: settled.at(-1)! },
        { what: 'speed', unit: 'calls/s', value: Math.round((calls / elapsedMs!) * 1_000) },
      ],
      ratio: null,
      goal: null,
      goals: [
        atMost('at most, MB', max, maxMb),
        atMost('between least and most (± 30 MB)', max - min, maxSpreadMb),
      ],
      verdict: noVerdict([use]),
      text: [
        cpuLine('all', use),
        ...plot(
          samples.map(({ rssMb }) => rssMb),
          'MB',
          `${Math.round(elapsedMs! / 1_000)} s`,
        ),
      ],
      detail: { calls, users, use, samples },
    }
  },
}
