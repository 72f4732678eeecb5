import { Child } from './child.ts'
import { nthCall } from './calls.ts'
import { cpuLine, forward, noVerdict, warmUpOf, type Drained } from './drain.ts'
import { medianBy } from './figures.ts'
import { deploy, otherCore, type Deployment, type Servers } from './rig.ts'
import { atLeast, type Workload } from './workload.ts'

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

/** Whether it costs to have many: each call goes to the five URLs of one destination. */
export const manyDestinations: Workload = {
  name: 'many-destinations',
  summary: `${many} destinations with ${urlsEach} endpoints each; reference: ${few} of them`,
  sizes: { calls: 60_000, rounds: 2 },
  quick: { calls: 10_000, rounds: 1 },
  async run(servers, { calls, rounds }) {
    const receiver = new Child('./receiver.ts', { core: otherCore, args: ['0', String(many)] })
    const { ports } = (await receiver.told('listening')) as unknown as { ports: number[] }
    const deployments: Deployment[] = []
    for (const { count, hosts } of sides)
      deployments.push(await prepare(servers, count, ports.slice(0, hosts), calls!))
    const requests = calls! * urlsEach
    const run = { servers, receiver, requests, warmUp: warmUpOf(requests) }
    const runs: Drained[][] = sides.map(() => [])
    for (let round = 0; round < rounds!; round++) {
      for (const [index, { env }] of deployments.entries())
        runs[index]!.push(await forward(run, { ...env, GROUP_ID: `${env.GROUP_ID}${round}` }))
    }
    await receiver.end()
    const figures = runs.map((each) => medianBy(each, ({ perSecond }) => perSecond))
    const [reference, ...others] = figures as [Drained, ...Drained[]]
    return {
      rows: figures.map(({ perSecond, cpuMicros, use }, index) => ({
        what: `${sides[index]!.name}${cpuMicros === null ? '' : `, ${cpuMicros} µs a request`}`,
        unit: 'requests/s',
        value: perSecond,
        ...(use.shares.measured !== undefined && { cpu: use.shares.measured }),
      })),
      ratio: null,
      goal: null,
      goals: others.map(({ perSecond }, index) =>
        atLeast(sides[index + 1]!.name, perSecond / reference.perSecond, 0.9),
      ),
      verdict: noVerdict(runs.flat().map(({ use }) => use)),
      text: figures.map(({ use }, index) => cpuLine(sides[index]!.name, use)),
      detail: { calls, requests, sides: sides.map(({ name }, index) => ({ name, runs: runs[index] })) },
    }
  },
}

/** Each destination has a source of its own, and the calls go to them in turns. */
async function prepare(
  servers: Servers,
  count: number,
  ports: readonly number[],
  calls: number,
): Promise<Deployment> {
  const deployment = await deploy(servers)
  for (let index = 0; index < count; index++) {
    const host = `http://127.0.0.1:${ports[index % ports.length]}`
    const urls = Array.from({ length: urlsEach }, (_, n) => `${host}/${index}/${n}`)
    await deployment.destination(`destination-${index}`, `source-${index}`, urls)
  }
  await deployment.produce(calls, (index) => nthCall(index, users, `source-${index % count}`), 'backlog')
  await deployment.close()
  return deployment
}
