import { nthCall } from '../../calls.ts'
import { cpuLine, forward, noVerdict, post, warmUpOf, type Drained } from '../../measure/drain.ts'
import { medianBy } from '../../measure/figures.ts'
import { startReceiver } from '../../receiver.ts'
import { deploy, type Deployment, type Servers } from '../../rig.ts'
import { atLeast, type Row, type Workload } from '../workload.ts'

const many = 1_000
const few = 10
const urlsEach = 5
const users = 10_000

/** One host takes all the calls, or each destination has one to itself: then it has connections of its own as well. */
const sides = [
  { name: `${few} destinations`, count: few, hosts: 1 },
  { name: `${many} destinations at one host`, count: many, hosts: 1 },
  { name: `${many} destinations, a host each`, count: many, hosts: many },
]

/** Requests in flight in the bare loop, each number once a round: the best counts. */
const tried = [32, 64, 128]

/**
 * The cost of many destinations: each call goes to the five URLs of one destination. A bare loop over the same URLs in
 * the same order is the reference.
 */
export const manyDestinations: Workload = {
  name: 'many-destinations',
  summary: `${many} destinations with ${urlsEach} endpoints each; reference: bare undici over the same URLs`,
  sizes: { calls: 60_000, rounds: 3 },
  quick: { calls: 10_000, rounds: 1 },
  async run(servers, { calls, rounds }) {
    const receiver = startReceiver({ ports: many })
    const { ports } = (await receiver.reported('listening')) as unknown as { ports: number[] }
    const deployments: Deployment[] = []
    const urls: string[][] = []
    for (const { count, hosts } of sides) {
      urls.push(urlsOf(count, ports.slice(0, hosts)))
      deployments.push(await prepare(servers, count, urls.at(-1)!, calls!))
    }
    const requests = calls! * urlsEach
    const run = { servers, receiver, requests, warmUp: warmUpOf(requests) }
    const runs = sides.map(() => ({
      postrider: [] as Drained[],
      bare: tried.map((inFlight) => ({ inFlight, runs: [] as Drained[] })),
    }))
    for (let round = 0; round < rounds!; round++) {
      for (const [index, { env }] of deployments.entries()) {
        const { postrider, bare } = runs[index]!
        postrider.push(await forward(run, { ...env, GROUP_ID: `${env.GROUP_ID}${round}` }))
        const { hosts } = sides[index]!
        for (const { inFlight, runs } of bare) {
          const connections = hosts === 1 ? inFlight : urlsEach
          runs.push(await post(run, { by: 'request', urls: urls[index]!, users, inFlight, connections }))
        }
      }
    }
    await receiver.end()
    const figures = runs.map(({ postrider, bare }) => ({
      postrider: middle(postrider),
      bare: bare
        .map(({ inFlight, runs }) => ({ ...middle(runs), inFlight }))
        .reduce((best, each) => (each.perSecond > best.perSecond ? each : best)),
    }))
    const all = runs.flatMap(({ postrider, bare }) => [...postrider, ...bare.flatMap(({ runs }) => runs)])
    return {
      rows: figures.flatMap(({ postrider, bare }, index) => [
        rowOf(sides[index]!.name, postrider),
        rowOf(`  bare undici, ${bare.inFlight} in flight`, bare),
      ]),
      ratio: null,
      goal: null,
      goals: figures.map(({ postrider, bare }, index) =>
        atLeast(`${sides[index]!.name}, of bare undici`, postrider.perSecond / bare.perSecond, 0.9),
      ),
      verdict: noVerdict(all.map(({ use }) => use)),
      text: figures.flatMap(({ postrider, bare }, index) => [
        cpuLine(sides[index]!.name, postrider.use),
        cpuLine('bare undici', bare.use),
      ]),
      detail: {
        calls,
        requests,
        sides: sides.map(({ name }, index) => ({ name, ...runs[index] })),
      },
    }
  },
}

const middle = (runs: readonly Drained[]): Drained => medianBy(runs, ({ perSecond }) => perSecond)

const rowOf = (name: string, { perSecond, cpuMicros, use }: Drained): Row => ({
  what: `${name}${cpuMicros === null ? '' : `, ${cpuMicros} µs a request`}`,
  unit: 'requests/s',
  value: perSecond,
  ...(use.shares.measured !== undefined && { cpu: use.shares.measured }),
})

/** Destination by destination, those of one together. */
const urlsOf = (count: number, ports: readonly number[]): string[] =>
  Array.from({ length: count * urlsEach }, (_, index) => {
    const destination = Math.floor(index / urlsEach)
    const port = ports[destination % ports.length]
    return `http://127.0.0.1:${port}/${destination}/${index % urlsEach}`
  })

/** Each destination has a source of its own, and the calls go to them in turns. */
async function prepare(
  servers: Servers,
  count: number,
  urls: readonly string[],
  calls: number,
): Promise<Deployment> {
  const deployment = await deploy(servers)
  for (let index = 0; index < count; index++) {
    const its = urls.slice(index * urlsEach, (index + 1) * urlsEach)
    await deployment.destination(`destination-${index}`, `source-${index}`, its)
  }
  await deployment.produce(calls, (index) => nthCall(index, users, `source-${index % count}`), 'backlog')
  await deployment.close()
  return deployment
}
