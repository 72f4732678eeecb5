import { nthCall } from '../../calls.ts'
import { makeCertificate } from '../../certificate.ts'
import type { BareWay } from '../../children/bare-posts.ts'
import { cpuLine, forward, noVerdict, post, warmUpOf, type Drain, type Drained } from '../../measure/drain.ts'
import { medianBy } from '../../measure/figures.ts'
import { startReceiver } from '../../receiver.ts'
import { deploy, type Servers } from '../../rig.ts'
import type { Result, Row, Workload } from '../workload.ts'

interface Comparison {
  calls: number
  rounds: number
  users: number
  /** What the receiver takes to answer, in ms. */
  delayMs: number
  /** The ways to post of the references, each with the numbers of requests in flight that it is tried with. */
  tried: readonly Tried[]
  /** Of its median over that of `request` at its best. */
  goal: number
  /** Over TLS 1.3. */
  secured?: boolean
}

interface Tried {
  by: BareWay
  inFlight: number
}

const allOf = (ways: readonly BareWay[], numbers: readonly number[]): Tried[] =>
  ways.flatMap((by) => numbers.map((inFlight) => ({ by, inFlight })))

/** Kafka → signed POST beside bare loops that render, sign and post the same bodies: one core each, the broker in both. */
export const throughput: Workload = {
  name: 'throughput',
  summary:
    'Kafka → signed POST, fast receiver, one core; references: bare undici `request`, its `dispatch`, raw sockets',
  sizes: { calls: 200_000, rounds: 5 },
  quick: { calls: 20_000, rounds: 1 },
  run: (servers, { calls, rounds }) =>
    compare(servers, {
      calls: calls!,
      rounds: rounds!,
      users: 10_000,
      delayMs: 0,
      tried: allOf(['request', 'dispatch', 'socket'], [32, 64, 128]),
      goal: 1,
    }),
}

export const slowReceiver: Workload = {
  name: 'slow-receiver',
  summary: 'the same with a receiver that takes 100 ms; references at their best number in flight',
  sizes: { calls: 200_000, rounds: 2 },
  quick: { calls: 20_000, rounds: 1 },
  run: (servers, { calls, rounds }) =>
    compare(servers, {
      calls: calls!,
      rounds: rounds!,
      // Each user's calls go one after another: there must be more users than requests in flight.
      users: 50_000,
      delayMs: 100,
      tried: allOf(['request', 'dispatch'], [1_024, 2_048, 3_072, 4_096]),
      goal: 0.95,
    }),
}

export const https: Workload = {
  name: 'https',
  summary: 'the same over TLS 1.3 with keep-alive; references: bare undici `request` and `dispatch`',
  sizes: { calls: 200_000, rounds: 5 },
  quick: { calls: 20_000, rounds: 1 },
  run: (servers, { calls, rounds }) =>
    compare(servers, {
      calls: calls!,
      rounds: rounds!,
      users: 10_000,
      delayMs: 0,
      tried: allOf(['request', 'dispatch'], [32, 64, 128]),
      goal: 1.05,
      secured: true,
    }),
}

async function compare(servers: Servers, comparison: Comparison): Promise<Result> {
  const { calls, rounds, users, delayMs, tried, goal, secured = false } = comparison
  const certificate = secured ? await makeCertificate() : null
  const deployment = await deploy(servers, { ...(certificate && { WEBHOOK_CA_FILE: certificate.file }) })
  const receiver = startReceiver({ delayMs, ...(certificate && { certificate }) })
  const { port } = await receiver.reported('listening')
  const url = `${secured ? 'https' : 'http'}://127.0.0.1:${port}/hook`
  const posts = { urls: [url], users, ...(certificate && { caFile: certificate.file }) }
  await deployment.destination('crm', 'shop', [url])
  await deployment.produce(calls, (index) => nthCall(index, users), 'backlog')
  await deployment.close()
  const run: Drain = { servers, receiver, requests: calls, warmUp: warmUpOf(calls) }
  const forwarding: Drained[] = []
  const bare: (Drained & Tried)[] = []
  for (let round = 0; round < rounds; round++) {
    for (const { by, inFlight } of tried)
      bare.push({
        ...{ by, inFlight },
        ...(await post(run, { ...posts, by, inFlight, connections: inFlight })),
      })
    const env = { ...deployment.env, GROUP_ID: `${deployment.env.GROUP_ID}${round}` }
    forwarding.push(await forward(run, env))
  }
  await receiver.end()
  const ours = medianBy(forwarding, ({ perSecond }) => perSecond)
  const best = bestOfEach(bare)
  const reference = best.find(({ by }) => by === 'request')!
  return {
    rows: [rowOf('Postrider', ours), ...best.map((each) => rowOf(nameOf(each), each))],
    ratio: ours.perSecond / reference.perSecond,
    goal,
    // Raw sockets may come up to the receiver's limit: they are a floor, and no goal.
    verdict: noVerdict([...forwarding, ...bare.filter(({ by }) => by === 'request')].map(({ use }) => use)),
    text: [
      ...best.map((each) => ratioLine(ours, each)),
      cpuLine('Postrider', ours.use),
      ...best.map((each) => cpuLine(nameOf(each), each.use)),
    ],
    detail: { calls, users, delayMs, forwarding, bare },
  }
}

const wayNames: Record<BareWay, string> = {
  request: 'undici request',
  dispatch: 'undici dispatch',
  socket: 'raw sockets',
}
const nameOf = ({ by, inFlight }: Tried): string => `${wayNames[by]}, ${inFlight} in flight`

const rowOf = (what: string, { perSecond, use, cpuMicros }: Drained): Row => ({
  what: cpuMicros === null ? what : `${what}, ${cpuMicros} µs each`,
  unit: 'calls/s',
  value: perSecond,
  ...(use.shares.measured !== undefined && { cpu: use.shares.measured }),
})

function ratioLine(ours: Drained, reference: Drained & Tried): string {
  const bySpeed = (ours.perSecond / reference.perSecond).toFixed(2)
  const [own, other] = [ours.cpuMicros, reference.cpuMicros]
  const byCpu = own === null || other === null ? '' : `, by CPU a call ${(other / own).toFixed(2)}`
  return `  Postrider is at ${bySpeed} of ${nameOf(reference)}${byCpu}`
}

/** Of each way the median run with the number in flight that was the fastest. */
function bestOfEach(runs: readonly (Drained & Tried)[]): (Drained & Tried)[] {
  const best = new Map<BareWay, Drained & Tried>()
  for (const tried of Map.groupBy(runs, nameOf).values()) {
    const middle = medianBy(tried, ({ perSecond }) => perSecond)
    if (middle.perSecond > (best.get(middle.by)?.perSecond ?? 0)) best.set(middle.by, middle)
  }
  return [...best.values()]
}
