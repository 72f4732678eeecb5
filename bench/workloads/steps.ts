import { setTimeout as delay } from 'node:timers/promises'
import { nthCall } from '../calls.ts'
import { Child } from '../child.ts'
import { startReceiver } from '../receiver.ts'
import { deploy, measuredCore } from '../rig.ts'
import { atMost, type Workload } from './workload.ts'

const flags = ['--import', new URL('../children/steps.ts', import.meta.url).href]
const warmUp = 200
/** Longer than from a call to its commit. */
const watchedMs = 2_000

/**
 * What a reader has to follow: from how many files one delivered call leads to how many others, from the fetched record to
 * the commit. Counted is who calls whom, each pair once; not what the forwarder does without a call.
 */
export const steps: Workload = {
  name: 'steps',
  summary:
    'how many times one delivered call leads from a file of `src` to another, and through how many files',
  sizes: { calls: 9 },
  quick: { calls: 1 },
  async run(servers, { calls }) {
    const deployment = await deploy(servers)
    const receiver = startReceiver()
    const { port } = await receiver.reported('listening')
    await deployment.destination('crm', 'shop', [`http://127.0.0.1:${port}/hook`])
    await deployment.produce(warmUp, (index) => nthCall(index, warmUp), 'warm-up')
    const forwarder = new Child('forwarding.ts', { core: measuredCore, env: deployment.env, flags })
    await forwarder.reported('ready')
    await delay(2 * watchedMs)
    const watch = async (work: () => Promise<void>): Promise<string[]> => {
      forwarder.send({ steps: 'count' })
      await work()
      await delay(watchedMs)
      const { steps: found } = (await forwarder.ask({ steps: 'report' }, 'steps')) as unknown as {
        steps: string[]
      }
      return found
    }
    const withCall: string[][] = []
    const without: string[][] = []
    for (let index = warmUp; index < warmUp + calls!; index++) {
      without.push(await watch(() => Promise.resolve()))
      withCall.push(await watch(() => deployment.produce(1, () => nthCall(index, warmUp), 'one call')))
    }
    await forwarder.end()
    await receiver.end()
    await deployment.close()
    const inMost = (runs: string[][]): string[] => {
      const counts = new Map<string, number>()
      for (const step of runs.flat()) counts.set(step, (counts.get(step) ?? 0) + 1)
      return [...counts].filter(([, count]) => count > runs.length / 2).map(([step]) => step)
    }
    const always = new Set(inMost(without))
    const ofCall = inMost(withCall).filter((step) => !always.has(step))
    const files = new Set(ofCall.flatMap((step) => step.split(' > ')).filter((file) => file !== 'outside'))
    return {
      rows: [
        { what: 'from one file to another without a call', unit: 'steps', value: always.size },
        { what: 'files that a call leads through', unit: 'files', value: files.size },
      ],
      ratio: null,
      goal: null,
      goals: [atMost('steps of a call', ofCall.length, 130)],
      verdict: null,
      detail: { ofCall: ofCall.toSorted(), always: [...always].toSorted() },
    }
  },
}
