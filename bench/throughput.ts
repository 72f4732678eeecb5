import { Child, bindsCores } from './child.ts'
import { nthCall } from './calls.ts'
import { deploy, measuredCore, otherCore, type Servers } from './rig.ts'
import type { Workload } from './workload.ts'

const users = 10_000
const inFlightTried = [32, 64, 128]

interface Run {
  perSecond: number
  /** Shares of one core while it ran. */
  cpu: number
  receiverCpu: number
  brokerCpu: number | null
}

/** Kafka → signed POST beside a bare `undici.request` loop: one core each, the broker running in both. */
export const throughput: Workload = {
  name: 'throughput',
  summary:
    'Kafka → signed POST, fast receiver, one core; reference: bare undici `request` with the same bodies and HMAC',
  async run(servers, { calls = 200_000, rounds = 3 }) {
    const deployment = await deploy(servers)
    const receiver = new Child('./receiver.ts', { core: otherCore })
    const { port } = await receiver.told('listening')
    const url = `http://127.0.0.1:${port}/hook`
    await deployment.destination('crm', 'shop', [url])
    await deployment.produce(calls, (index) => nthCall(index, users), 'throughput')
    await deployment.close()
    const forwarding: Run[] = []
    const bare: (Run & { inFlight: number })[] = []
    for (let round = 0; round < rounds; round++) {
      const env = { ...deployment.env, GROUP_ID: `${deployment.env.GROUP_ID}${round}` }
      forwarding.push(await forward(servers, receiver, env, calls))
      for (const inFlight of inFlightTried) {
        bare.push({ inFlight, ...(await request(servers, receiver, url, calls, inFlight)) })
      }
    }
    await receiver.end()
    const best = bestInFlight(bare)
    const reference = bare.filter(({ inFlight }) => inFlight === best)
    const figure = median(forwarding.map(({ perSecond }) => perSecond))
    const referenceFigure = median(reference.map(({ perSecond }) => perSecond))
    const busiest = Math.max(
      ...[...forwarding, ...reference].map((run) => run.receiverCpu + (run.brokerCpu ?? 0)),
    )
    return {
      rows: [
        { what: 'Postrider', unit: 'calls/s', value: figure, cpu: median(forwarding.map(({ cpu }) => cpu)) },
        {
          what: `undici request, ${best} in flight`,
          unit: 'calls/s',
          value: referenceFigure,
          cpu: median(reference.map(({ cpu }) => cpu)),
        },
      ],
      ratio: figure / referenceFigure,
      goal: 1,
      verdict: !bindsCores
        ? 'no verdict: processes cannot be bound to cores here (taskset)'
        : busiest > 0.9
          ? `no verdict: the receiver's core was ${Math.round(busiest * 100)} % busy`
          : null,
      detail: { calls, users, forwarding, bare },
    }
  },
}

async function forward(
  servers: Servers,
  receiver: Child,
  env: Record<string, string>,
  calls: number,
): Promise<Run> {
  await receiver.ask({ expect: calls }, 'ready')
  const broker = await servers.brokerCpuMs()
  const done = receiver.told('done')
  const child = new Child('./forwarding.ts', { core: measuredCore, env })
  await child.told('listening')
  const before = await child.ask({}, 'usage')
  const { elapsedMs, cpuMs } = await done
  const after = await child.ask({}, 'usage')
  const brokerAfter = await servers.brokerCpuMs()
  await child.end()
  return {
    perSecond: Math.round((calls / elapsedMs!) * 1_000),
    cpu: round2((after.cpuMs! - before.cpuMs!) / elapsedMs!),
    receiverCpu: round2(cpuMs! / elapsedMs!),
    brokerCpu: broker === null || brokerAfter === null ? null : round2((brokerAfter - broker) / elapsedMs!),
  }
}

async function request(
  servers: Servers,
  receiver: Child,
  url: string,
  requests: number,
  inFlight: number,
): Promise<Run> {
  await receiver.ask({ expect: requests }, 'ready')
  const broker = await servers.brokerCpuMs()
  const done = receiver.told('done')
  const child = new Child('./bare-undici.ts', { core: measuredCore })
  await child.told('listening')
  const finished = child.told('finished')
  child.send({ url, requests, users, inFlight })
  const [{ elapsedMs, cpuMs }, { cpuMs: used }] = await Promise.all([done, finished])
  const brokerAfter = await servers.brokerCpuMs()
  await child.end()
  return {
    perSecond: Math.round((requests / elapsedMs!) * 1_000),
    cpu: round2(used! / elapsedMs!),
    receiverCpu: round2(cpuMs! / elapsedMs!),
    brokerCpu: broker === null || brokerAfter === null ? null : round2((brokerAfter - broker) / elapsedMs!),
  }
}

function bestInFlight(runs: readonly (Run & { inFlight: number })[]): number {
  const medians = inFlightTried.map((inFlight) => ({
    inFlight,
    perSecond: median(runs.filter((run) => run.inFlight === inFlight).map(({ perSecond }) => perSecond)),
  }))
  return medians.reduce((best, each) => (each.perSecond > best.perSecond ? each : best)).inFlight
}

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]!
}

const round2 = (value: number): number => Math.round(value * 100) / 100
