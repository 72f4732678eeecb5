import { Child } from '../child.ts'
import { nthCall } from '../calls.ts'
import { cpuLine, forward, noVerdict, request, warmUpOf, type Drain, type Drained } from '../measure/drain.ts'
import { median, medianBy } from '../measure/figures.ts'
import { deploy, otherCore, type Servers } from '../rig.ts'
import type { Result, Workload } from './workload.ts'

interface Comparison {
  calls: number
  rounds: number
  users: number
  /** What the receiver takes to answer, in ms. */
  delayMs: number
  /** Numbers of requests in flight that the reference is tried with. */
  inFlightTried: readonly number[]
  /** Of its median over that of the reference at its best. */
  goal: number
}

/** Kafka → signed POST beside a bare `undici.request` loop: one core each, the broker running in both. */
export const throughput: Workload = {
  name: 'throughput',
  summary:
    'Kafka → signed POST, fast receiver, one core; reference: bare undici `request` with the same bodies and HMAC',
  sizes: { calls: 200_000, rounds: 3 },
  quick: { calls: 20_000, rounds: 1 },
  run: (servers, { calls, rounds }) =>
    compare(servers, {
      calls: calls!,
      rounds: rounds!,
      users: 10_000,
      delayMs: 0,
      inFlightTried: [32, 64, 128],
      goal: 1,
    }),
}

export const slowReceiver: Workload = {
  name: 'slow-receiver',
  summary: 'the same with a receiver that takes 100 ms; reference: bare undici at its best number in flight',
  sizes: { calls: 200_000, rounds: 2 },
  quick: { calls: 20_000, rounds: 1 },
  run: (servers, { calls, rounds }) =>
    compare(servers, {
      calls: calls!,
      rounds: rounds!,
      // Each user's calls go one after another: there must be more users than requests in flight.
      users: 50_000,
      delayMs: 100,
      inFlightTried: [1_024, 2_048, 3_072, 4_096],
      goal: 0.95,
    }),
}

async function compare(servers: Servers, comparison: Comparison): Promise<Result> {
  const { calls, rounds, users, delayMs, inFlightTried, goal } = comparison
  const deployment = await deploy(servers)
  const receiver = new Child('receiver.ts', { core: otherCore, args: [String(delayMs)] })
  const { port } = await receiver.reported('listening')
  const url = `http://127.0.0.1:${port}/hook`
  await deployment.destination('crm', 'shop', [url])
  await deployment.produce(calls, (index) => nthCall(index, users), 'backlog')
  await deployment.close()
  const run: Drain = { servers, receiver, requests: calls, warmUp: warmUpOf(calls) }
  const forwarding: Drained[] = []
  const bare: (Drained & { inFlight: number })[] = []
  for (let round = 0; round < rounds; round++) {
    const env = { ...deployment.env, GROUP_ID: `${deployment.env.GROUP_ID}${round}` }
    forwarding.push(await forward(run, env))
    for (const inFlight of inFlightTried)
      bare.push({
        inFlight,
        ...(await request(run, { urls: [url], users, inFlight, connections: inFlight })),
      })
  }
  await receiver.end()
  const best = bestInFlight(bare, inFlightTried)
  const tried = bare.filter(({ inFlight }) => inFlight === best)
  const ours = medianBy(forwarding, ({ perSecond }) => perSecond)
  const reference = medianBy(tried, ({ perSecond }) => perSecond)
  const row = (what: string, { perSecond, use, cpuMicros }: Drained) => ({
    what: cpuMicros === null ? what : `${what}, ${cpuMicros} µs each`,
    unit: 'calls/s',
    value: perSecond,
    ...(use.shares.measured !== undefined && { cpu: use.shares.measured }),
  })
  return {
    rows: [row('Postrider', ours), row(`undici request, ${best} in flight`, reference)],
    ratio: ours.perSecond / reference.perSecond,
    goal,
    verdict: noVerdict([...forwarding, ...tried].map(({ use }) => use)),
    text: [cpuLine('Postrider', ours.use), cpuLine('undici', reference.use)],
    detail: { calls, users, delayMs, forwarding, bare },
  }
}

function bestInFlight(runs: readonly (Drained & { inFlight: number })[], tried: readonly number[]): number {
  const figureOf = (inFlight: number) =>
    median(runs.filter((run) => run.inFlight === inFlight).map(({ perSecond }) => perSecond))
  return tried.reduce((best, each) => (figureOf(each) > figureOf(best) ? each : best))
}
