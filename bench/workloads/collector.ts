import { Child, bindsCores, type ChildReport } from '../child.ts'
import { costOf, median, medianBy, round2 } from '../measure/figures.ts'
import { deploy, measuredCore, otherCore, type Servers } from '../rig.ts'
import { atLeast, atMost, type Row, type Workload } from './workload.ts'

const batch = 20
const batchConnections = 128
const singleConnections = 1_000
const warmUpMs = 2_000
/** By what it is to be compiled, also where the machine is shared and little runs within the time. */
const warmUpCalls = { batches: 150_000, singles: 30_000 }
const batchesTried = [
  { batchSize: 1_000, inFlight: 1 },
  { batchSize: 2_000, inFlight: 1 },
  { batchSize: 1_000, inFlight: 2 },
]
/** Loaded before a collector, it takes away what SDKs ask for. */
const withoutSdks = ['--import', new URL('../children/without-sdk-routes.ts', import.meta.url).href]
const minRatio = 0.6
const maxP99Ms = 15

interface Load {
  batchSize: number
  connections: number
  /** Requests a second; 0: as fast as they are answered. */
  rate: number
  /** Asked for by GET, in place of calls. */
  path?: string
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

interface Runs {
  batches: Run
  singles: Run
  /** At a rate. */
  half: Run
  /** The settings that an SDK asks for; null of a reference. */
  settings: Run | null
}

interface Produced {
  batchSize: number
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
    const poster = new Child('poster.ts', { core: otherCore })
    await poster.reported('listening')
    /** On a process of its own, one load after another; the rate of the last one is half of what came before unless given. */
    const measured = async (
      file: string,
      { rate, hasSettings = false }: { rate?: number; hasSettings?: boolean },
    ): Promise<Runs> => {
      const child = new Child(file, { core: measuredCore, env: deployment.env })
      const { port } = await child.reported('listening')
      const under = (load: Load) => post(servers, poster, child, port!, load, measureMs)
      const batches = await under({ batchSize: batch, connections: batchConnections, rate: 0 })
      const single: Load = { batchSize: 1, connections: singleConnections, rate: 0 }
      const singles = await under(single)
      const half = await under({ ...single, rate: rate ?? Math.round(singles.perSecond / 2) })
      const settings = hasSettings ? await under({ ...single, path: '/v1/projects/key-shop/settings' }) : null
      await child.end()
      return { batches, singles, half, settings }
    }
    const batchesWithoutSdks = async (): Promise<Run> => {
      const child = new Child('collecting.ts', {
        core: measuredCore,
        env: deployment.env,
        flags: withoutSdks,
      })
      const { port } = await child.reported('listening')
      const load = { batchSize: batch, connections: batchConnections, rate: 0 }
      const run = await post(servers, poster, child, port!, load, measureMs)
      await child.end()
      return run
    }
    const ours: Runs[] = []
    const without: Run[] = []
    const fastify: Runs[] = []
    const produced: Produced[] = []
    for (let round = 0; round < sizes.rounds!; round++) {
      // Each goes first in turn, for a machine that slows down does so in one direction.
      if (round % 2 === 1) without.push(await batchesWithoutSdks())
      const our = await measured('collecting.ts', { hasSettings: true })
      ours.push(our)
      if (round % 2 === 0) without.push(await batchesWithoutSdks())
      fastify.push(await measured('bare-fastify.ts', { rate: Math.round(our.singles.perSecond / 2) }))
      produced.push(...(await produce(deployment.env, measureMs)))
    }
    await poster.end()
    const kafka = best(produced)
    // The second way of measuring, by CPU time: it depends less on what else runs on the machine. For kafkajs, the
    // cheapest batch counts, which need not be the fastest.
    const ourCpuUs = cpuOf(ours, 'batches')
    const referenceCpuUs = Math.max(cpuOf(fastify, 'batches'), kafka.cpuUs)
    const all = ours.flatMap(runsOf)
    const [ourHalf, fastifyHalf] = [ours, fastify].map((runs) =>
      medianBy(
        runs.map(({ half }) => half),
        ({ p99Ms }) => p99Ms,
      ),
    )
    return {
      rows: [
        calls(`in batches of ${batch}`, of(ours, 'batches')),
        cpu('its CPU', ourCpuUs),
        ms('answer to a batch, p99', of(ours, 'batches').p99Ms),
        calls('bare Fastify, the same bodies parsed', of(fastify, 'batches')),
        cpu('its CPU', cpuOf(fastify, 'batches')),
        calls(`bare kafkajs, ${kafka.inFlight} × ${kafka.batchSize} of the same records`, kafka),
        cpu('its CPU, at the least', kafka.cpuUs),
        calls(`single calls, ${singleConnections} connections`, of(ours, 'singles')),
        cpu('its CPU', cpuOf(ours, 'singles')),
        calls('bare Fastify, the same', of(fastify, 'singles')),
        cpu('its CPU', cpuOf(fastify, 'singles')),
        calls('settings that an SDK asks for, the same', of(ours, 'settings')),
        cpu('their CPU', cpuOf(ours, 'settings')),
        {
          what: 'cost of a call where nobody asks for it',
          unit: '% of CPU',
          value: costOf(
            ours.map(({ batches }) => batches),
            without,
            ({ cpuUs }) => cpuUs,
          )!,
        },
        {
          what: 'memory for it',
          unit: 'MB',
          value: median(ours.map(({ batches }, round) => batches.rssMb - without[round]!.rssMb)),
        },
        calls('half of the single calls, at a rate', ourHalf!),
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
          of(ours, 'batches').perSecond / Math.min(of(fastify, 'batches').perSecond, kafka.perSecond),
          minRatio,
        ),
        atLeast('the same by CPU a call', referenceCpuUs / ourCpuUs, minRatio),
        atMost('single call at half load, p99 in ms', ourHalf!.p99Ms, maxP99Ms),
        atMost(
          'CPU of settings by that of a single call',
          cpuOf(ours, 'settings') / cpuOf(ours, 'singles'),
          1,
        ),
      ],
      verdict: noVerdict(all, fastify.flatMap(runsOf)),
      detail: { ours, without, fastify, produced },
    }
  },
}

const runsOf = (runs: Runs): Run[] => (Object.values(runs) as (Run | null)[]).filter((run) => run !== null)

/** The round that is the median. */
const of = (runs: readonly Runs[], load: keyof Runs): Run =>
  medianBy(
    runs.map((each) => each[load]!),
    ({ perSecond }) => perSecond,
  )

const cpuOf = (runs: readonly Runs[], load: keyof Runs): number =>
  median(runs.map((each) => each[load]!.cpuUs))

async function post(
  servers: Servers,
  poster: Child,
  child: Child,
  port: number,
  load: Load,
  measureMs: number,
): Promise<Run> {
  const warm = poster.reported('warm')
  const warmUp = { warmUpMs, warmUpCalls: load.batchSize > 1 ? warmUpCalls.batches : warmUpCalls.singles }
  const posted = poster.ask({ port, writeKey: 'key-shop', ...load, ...warmUp, measureMs }, 'posted')
  await warm
  const before = await usageOf(servers, child)
  const reported = await posted
  const after = await usageOf(servers, child)
  const elapsedMs = after.at - before.at
  const cpuMs = after.cpuMs - before.cpuMs
  return {
    perSecond: Math.round(reported.perSecond!),
    p50Ms: round2(reported.p50Ms!),
    p99Ms: round2(reported.p99Ms!),
    failed: reported.failed!,
    cpu: round2(cpuMs / elapsedMs),
    cpuUs: round2((cpuMs * 1_000) / reported.calls!),
    posterCpu: round2(reported.cpuShare!),
    brokerCpu:
      before.broker === null || after.broker === null
        ? null
        : round2((after.broker - before.broker) / elapsedMs),
    rssMb: Math.round(after.rssMb),
  }
}

async function usageOf(servers: Servers, child: Child) {
  const { cpuMs, rssMb, at } = (await child.ask({}, 'usage')) as ChildReport
  return { cpuMs: cpuMs!, rssMb: rssMb!, at: at!, broker: await servers.brokerCpuMs() }
}

async function produce(env: Record<string, string>, measureMs: number): Promise<Produced[]> {
  const child = new Child('bare-produce.ts', { core: measuredCore, env })
  await child.reported('listening')
  const produced: Produced[] = []
  for (const tried of batchesTried) {
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

/** kafkajs at the batches with which it is fastest, with the least CPU that it took at any. */
function best(produced: readonly Produced[]): Produced {
  const medians = batchesTried.map(({ batchSize, inFlight }) => {
    const same = produced.filter((each) => each.batchSize === batchSize && each.inFlight === inFlight)
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
