import { Child, bindsCores, type Told } from './child.ts'
import { median, medianBy, round2 } from './figures.ts'
import { deploy, measuredCore, otherCore, type Servers } from './rig.ts'
import { atLeast, type Row, type Workload } from './workload.ts'

const batch = 20
const batchConnections = 128
const singleConnections = 1_000
const warmUpMs = 2_000
/** By what it is to be compiled, also where the machine is shared and little runs within the time. */
const warmUpCalls = { batches: 150_000, singles: 30_000 }
const lotsTried = [
  { lot: 1_000, inFlight: 1 },
  { lot: 2_000, inFlight: 1 },
  { lot: 1_000, inFlight: 2 },
]
const leastRatio = 0.6

interface Load {
  batch: number
  connections: number
  /** Requests a second; 0: as fast as they are answered. */
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
  /** Resident memory of the process that is measured, at the end. */
  rssMb: number
}

interface Produced {
  lot: number
  inFlight: number
  perSecond: number
  cpu: number
  cpuUs: number
}

/** HTTP → Kafka beside its two halves alone: Fastify that parses the same bodies, kafkajs that sends the same records. */
export const collector: Workload = {
  name: 'collector',
  summary: `HTTP → Kafka in batches of ${batch}, one core; references: bare Fastify and bare kafkajs produce, the slower of which counts; single calls at ${singleConnections} connections, and at half that load`,
  sizes: { rounds: 3, seconds: 5 },
  quick: { rounds: 1, seconds: 1 },
  async run(servers, sizes) {
    const measureMs = sizes.seconds! * 1_000
    const deployment = await deploy(servers)
    await deployment.destination('crm', 'shop', ['http://127.0.0.1:9/hook'])
    await deployment.close()
    const poster = new Child('./poster.ts', { core: otherCore })
    await poster.told('listening')
    /** Runs the loads one after another on a process of its own. */
    const measured = async (file: string, loads: Load[]): Promise<Run[]> => {
      const child = new Child(file, { core: measuredCore, env: deployment.env })
      const { port } = await child.told('listening')
      const runs: Run[] = []
      for (const load of loads) runs.push(await post(servers, poster, child, port!, load, measureMs))
      await child.end()
      return runs
    }
    const batches: Load = { batch, connections: batchConnections, rate: 0 }
    const singles: Load = { batch: 1, connections: singleConnections, rate: 0 }
    const ours: Run[][] = []
    const fastify: Run[][] = []
    const produced: Produced[] = []
    for (let round = 0; round < sizes.rounds!; round++) {
      ours.push(await measured('./collecting.ts', [batches, singles]))
      fastify.push(await measured('./bare-fastify.ts', [batches, singles]))
      produced.push(...(await produce(deployment.env, measureMs)))
    }
    const of = (runs: Run[][], load: 0 | 1) =>
      medianBy(
        runs.map((each) => each[load]!),
        ({ perSecond }) => perSecond,
      )
    const half: Load = { ...singles, rate: Math.round(of(ours, 1).perSecond / 2) }
    const [ourHalf] = await measured('./collecting.ts', [half])
    const [fastifyHalf] = await measured('./bare-fastify.ts', [half])
    await poster.end()
    const kafka = best(produced)
    // The second way of measuring, by what each of them uses up: it matters less who else uses the machine. That of
    // kafkajs is taken at its cheapest lot, which need not be its fastest.
    const cpuOf = (runs: Run[][], load: 0 | 1) => median(runs.map((each) => each[load]!.cpuUs))
    const ourCpuUs = cpuOf(ours, 0)
    const referenceCpuUs = Math.max(cpuOf(fastify, 0), kafka.cpuUs)
    const all = [...ours.flat(), ourHalf!]
    return {
      rows: [
        calls(`in batches of ${batch}`, of(ours, 0)),
        cpu('its CPU', ourCpuUs),
        ms('answer to a batch, p99', of(ours, 0).p99Ms),
        calls('bare Fastify, the same bodies parsed', of(fastify, 0)),
        cpu('its CPU', cpuOf(fastify, 0)),
        calls(`bare kafkajs, ${kafka.inFlight} × ${kafka.lot} of the same records`, kafka),
        cpu('its CPU, at the least', kafka.cpuUs),
        calls(`single calls, ${singleConnections} connections`, of(ours, 1)),
        cpu('its CPU', cpuOf(ours, 1)),
        calls('bare Fastify, the same', of(fastify, 1)),
        cpu('its CPU', cpuOf(fastify, 1)),
        calls('half of that, at a rate', ourHalf!),
        ms('single call at half that load, p50', ourHalf!.p50Ms),
        ms('single call at half that load, p99', ourHalf!.p99Ms),
        ms('bare Fastify at the same rate, p99', fastifyHalf!.p99Ms),
        { what: 'resident memory, at most', unit: 'MB', value: Math.max(...all.map(({ rssMb }) => rssMb)) },
      ],
      ratio: null,
      goal: null,
      goals: [
        atLeast(
          'ratio to the slower reference',
          of(ours, 0).perSecond / Math.min(of(fastify, 0).perSecond, kafka.perSecond),
          leastRatio,
        ),
        atLeast('the same by CPU a call', referenceCpuUs / ourCpuUs, leastRatio),
      ],
      verdict: noVerdict(all, [...fastify.flat(), fastifyHalf!]),
      detail: { ours, fastify, produced, half: { ours: ourHalf, fastify: fastifyHalf } },
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
  const warmUp = { warmUpMs, warmUpCalls: load.batch > 1 ? warmUpCalls.batches : warmUpCalls.singles }
  const posted = poster.ask({ port, writeKey: 'key-shop', ...load, ...warmUp, measureMs }, 'posted')
  await warm
  const before = await usageOf(servers, child)
  const told = await posted
  const after = await usageOf(servers, child)
  const elapsedMs = after.at - before.at
  const cpuMs = after.cpuMs - before.cpuMs
  return {
    perSecond: Math.round(told.perSecond!),
    p50Ms: round2(told.p50Ms!),
    p99Ms: round2(told.p99Ms!),
    failed: told.failed!,
    cpu: round2(cpuMs / elapsedMs),
    cpuUs: round2((cpuMs * 1_000) / told.calls!),
    posterCpu: round2(told.cpuShare!),
    brokerCpu:
      before.broker === null || after.broker === null
        ? null
        : round2((after.broker - before.broker) / elapsedMs),
    rssMb: Math.round(after.rssMb),
  }
}

async function usageOf(servers: Servers, child: Child) {
  const { cpuMs, rssMb, at } = (await child.ask({}, 'usage')) as Told
  return { cpuMs: cpuMs!, rssMb: rssMb!, at: at!, broker: await servers.brokerCpuMs() }
}

async function produce(env: Record<string, string>, measureMs: number): Promise<Produced[]> {
  const child = new Child('./bare-produce.ts', { core: measuredCore, env })
  await child.told('listening')
  const produced: Produced[] = []
  for (const tried of lotsTried) {
    const order = { ...tried, warmUpMs, warmUpCalls: warmUpCalls.batches, measureMs }
    const { perSecond, cpuShare, cpuMs, calls } = await child.ask(order, 'produced')
    produced.push({
      ...tried,
      perSecond: Math.round(perSecond!),
      cpu: round2(cpuShare!),
      cpuUs: round2((cpuMs! * 1_000) / calls!),
    })
  }
  await child.end()
  return produced
}

/** kafkajs at the lots with which it is fastest, with the least CPU that it took at any. */
function best(produced: readonly Produced[]): Produced {
  const medians = lotsTried.map(({ lot, inFlight }) => {
    const same = produced.filter((each) => each.lot === lot && each.inFlight === inFlight)
    return { ...medianBy(same, ({ perSecond }) => perSecond), cpuUs: median(same.map(({ cpuUs }) => cpuUs)) }
  })
  const fastest = medians.reduce((found, each) => (each.perSecond > found.perSecond ? each : found))
  return { ...fastest, cpuUs: Math.min(...medians.map(({ cpuUs }) => cpuUs)) }
}

/** Both of the other core's users were the limit where it was all but busy, of us or of a reference. */
function noVerdict(ours: readonly Run[], references: readonly Run[]): string | null {
  const failed = [...ours, ...references].reduce((sum, run) => sum + run.failed, 0)
  if (failed > 0) return `no verdict: ${failed} requests were not answered 200`
  if (!bindsCores) return 'no verdict: processes cannot be bound to cores here (taskset)'
  const busiest = Math.max(...ours.map(({ posterCpu, brokerCpu }) => posterCpu + (brokerCpu ?? 0)))
  return busiest > 0.9
    ? `no verdict: the sender's and the broker's core was ${Math.round(busiest * 100)} % busy`
    : null
}

const calls = (what: string, { perSecond, cpu }: { perSecond: number; cpu: number }): Row => ({
  what,
  unit: 'calls/s',
  value: Math.round(perSecond),
  cpu,
})
const cpu = (what: string, value: number): Row => ({ what, unit: 'µs a call', value: round2(value) })
const ms = (what: string, value: number): Row => ({ what, unit: 'ms', value: round2(value) })
