import { Child, bindsCores } from './child.ts'
import { deploy, measuredCore, otherCore, type Servers } from './rig.ts'
import type { Workload } from './workload.ts'

const batch = 20
const batchConnections = 128
const singleConnections = 1_000
const warmUpMs = 2_000
const lotsTried = [
  { lot: 500, inFlight: 1 },
  { lot: 1_000, inFlight: 1 },
  { lot: 2_000, inFlight: 1 },
  { lot: 1_000, inFlight: 2 },
]

interface Load {
  batch: number
  connections: number
  rate: number
}

interface Run {
  perSecond: number
  p50Ms: number
  p99Ms: number
  failed: number
  /** Shares of one core while it ran. */
  cpu: number
  /** User and system time of the process that is measured, in µs a call. */
  cpuUs: number
  posterCpu: number
  brokerCpu: number | null
}

/** HTTP → Kafka beside its two halves alone: Fastify that parses the same bodies, kafkajs that sends the same records. */
export const collector: Workload = {
  name: 'collector',
  summary: `HTTP → Kafka in batches of ${batch}, one core; reference: the slower of bare Fastify and bare kafkajs produce`,
  async run(servers, { rounds = 3, calls = 400_000 }) {
    // About so many calls a round, at what is to be expected.
    const measureMs = Math.max(1_000, calls / 80)
    const deployment = await deploy(servers)
    await deployment.destination('crm', 'shop', ['http://127.0.0.1:9/hook'])
    await deployment.close()
    const poster = new Child('./poster.ts', { core: otherCore })
    await poster.told('listening')
    const batches: Load = { batch, connections: batchConnections, rate: 0 }
    const runs: Record<'collector' | 'fastify' | 'single' | 'bareSingle', Run[]> = {
      collector: [],
      fastify: [],
      single: [],
      bareSingle: [],
    }
    const produced: { lot: number; inFlight: number; perSecond: number; cpuShare: number; cpuUs: number }[] =
      []
    const measured = async (file: string, env: Record<string, string>, loads: [Run[], Load][]) => {
      const child = new Child(file, { core: measuredCore, env })
      const { port } = await child.told('listening')
      for (const [into, load] of loads) into.push(await post(servers, poster, child, port!, load, measureMs))
      await child.end()
    }
    for (let round = 0; round < rounds; round++) {
      const singles: Load = { batch: 1, connections: singleConnections, rate: 0 }
      await measured('./collecting.ts', deployment.env, [
        [runs.collector, batches],
        [runs.single, singles],
      ])
      await measured('./bare-fastify.ts', {}, [
        [runs.fastify, batches],
        [runs.bareSingle, singles],
      ])
      const child = new Child('./bare-produce.ts', { core: measuredCore, env: deployment.env })
      await child.told('listening')
      for (const tried of lotsTried) {
        const { perSecond, cpuShare } = await child.ask({ ...tried, warmUpMs, measureMs }, 'produced')
        const cpuUs = round2((cpuShare! * 1e6) / perSecond!)
        produced.push({ ...tried, perSecond: perSecond!, cpuShare: cpuShare!, cpuUs })
      }
      await child.end()
    }
    const single = median(runs.single, ({ perSecond }) => perSecond).perSecond
    const half: Run[] = []
    await measured('./collecting.ts', deployment.env, [
      [half, { batch: 1, connections: singleConnections, rate: Math.round(single / 2) }],
    ])
    await poster.end()
    const ours = median(runs.collector, ({ perSecond }) => perSecond)
    const fastify = median(runs.fastify, ({ perSecond }) => perSecond)
    const kafka = lotsTried
      .map(({ lot, inFlight }) =>
        median(
          produced.filter((each) => each.lot === lot && each.inFlight === inFlight),
          ({ perSecond }) => perSecond,
        ),
      )
      .reduce((best, each) => (each.perSecond > best.perSecond ? each : best))
    // The second way of measuring, by what each of them uses up: it does not matter who else uses the machine. That of
    // bare kafkajs is taken at its cheapest lot, which need not be its fastest.
    const ourCpuUs = median(runs.collector, ({ cpuUs }) => cpuUs).cpuUs
    const fastifyCpuUs = median(runs.fastify, ({ cpuUs }) => cpuUs).cpuUs
    const kafkaCpuUs = Math.min(
      ...lotsTried.map(
        ({ lot, inFlight }) =>
          median(
            produced.filter((each) => each.lot === lot && each.inFlight === inFlight),
            ({ cpuUs }) => cpuUs,
          ).cpuUs,
      ),
    )
    const busiest = Math.max(
      ...runs.collector.map(({ posterCpu, brokerCpu }) => posterCpu + (brokerCpu ?? 0)),
    )
    const failed = Object.values(runs)
      .flat()
      .concat(half)
      .reduce((sum, run) => sum + run.failed, 0)
    return {
      rows: [
        row('Postrider', 'calls/s', ours.perSecond, ours.cpu),
        row('its CPU', 'µs a call', ourCpuUs),
        row('bare Fastify, JSON parsed', 'calls/s', fastify.perSecond, fastify.cpu),
        row('its CPU', 'µs a call', fastifyCpuUs),
        row(
          `bare kafkajs, ${kafka.inFlight} × ${kafka.lot} a lot`,
          'calls/s',
          kafka.perSecond,
          kafka.cpuShare,
        ),
        row('its CPU, at the least', 'µs a call', kafkaCpuUs),
        row('ratio by CPU', '', Math.max(fastifyCpuUs, kafkaCpuUs) / ourCpuUs),
        row('answer to a batch, p99', 'ms', ours.p99Ms),
        row(`single calls, ${singleConnections} connections`, 'calls/s', single),
        row(
          'bare Fastify, the same',
          'calls/s',
          median(runs.bareSingle, ({ perSecond }) => perSecond).perSecond,
        ),
        row('single call at half that load, p50', 'ms', half[0]!.p50Ms),
        row('single call at half that load, p99', 'ms', half[0]!.p99Ms),
      ],
      ratio: ours.perSecond / Math.min(fastify.perSecond, kafka.perSecond),
      goal: 0.6,
      verdict:
        failed > 0
          ? `no verdict: ${failed} requests were not answered 200`
          : !bindsCores
            ? 'no verdict: processes cannot be bound to cores here (taskset)'
            : busiest > 0.9
              ? `no verdict: the sender's and the broker's core was ${Math.round(busiest * 100)} % busy`
              : null,
      detail: { runs, produced, half },
    }
  },
}

async function post(
  servers: Servers,
  poster: Child,
  child: Child,
  port: number,
  load: Load,
  measureMs: number,
): Promise<Run> {
  const warm = poster.told('warm')
  const posted = poster.ask({ port, writeKey: 'key-shop', ...load, warmUpMs, measureMs }, 'posted')
  await warm
  const broker = await servers.brokerCpuMs()
  const before = await child.ask({}, 'usage')
  const told = await posted
  const after = await child.ask({}, 'usage')
  const brokerAfter = await servers.brokerCpuMs()
  const elapsedMs = after.at! - before.at!
  return {
    perSecond: Math.round(told.perSecond!),
    p50Ms: round2(told.p50Ms!),
    p99Ms: round2(told.p99Ms!),
    failed: told.failed!,
    cpu: round2((after.cpuMs! - before.cpuMs!) / elapsedMs),
    cpuUs: round2(((after.cpuMs! - before.cpuMs!) * 1_000) / ((told.perSecond! * measureMs) / 1_000)),
    posterCpu: round2(told.cpuShare!),
    brokerCpu: broker === null || brokerAfter === null ? null : round2((brokerAfter - broker) / elapsedMs),
  }
}

const row = (what: string, unit: string, value: number, cpu?: number) => ({
  what,
  unit,
  value: unit === 'calls/s' ? Math.round(value) : round2(value),
  ...(cpu !== undefined && { cpu: round2(cpu) }),
})

function median<T>(all: readonly T[], by: (each: T) => number): T {
  return [...all].sort((a, b) => by(a) - by(b))[Math.floor(all.length / 2)]!
}

const round2 = (value: number): number => Math.round(value * 100) / 100
