import { Child } from './child.ts'
import { nthCall } from './calls.ts'
import { cpuLine, forward, noVerdict, warmUpOf, type Drained } from './drain.ts'
import { medianBy } from './figures.ts'
import { deploy, otherCore, type Deployment, type Servers } from './rig.ts'
import type { Workload } from './workload.ts'

const many = 1_000
const few = 10
const urlsEach = 5
const users = 10_000

/** Whether it costs to have many: each call goes to the five URLs of one destination. */
export const manyDestinations: Workload = {
  name: 'many-destinations',
  summary: `${many} destinations with ${urlsEach} endpoints each; reference: ${few} of them`,
  sizes: { calls: 60_000, rounds: 2 },
  quick: { calls: 10_000, rounds: 1 },
  async run(servers, { calls, rounds }) {
    const receiver = new Child('./receiver.ts', { core: otherCore })
    const { port } = await receiver.told('listening')
    const sides = new Map<number, { deployment: Deployment; runs: Drained[] }>()
    for (const count of [few, many])
      sides.set(count, { deployment: await prepare(servers, count, port!, calls!), runs: [] })
    const requests = calls! * urlsEach
    const run = { servers, receiver, requests, warmUp: warmUpOf(requests) }
    for (let round = 0; round < rounds!; round++) {
      for (const { deployment, runs } of sides.values()) {
        const env = { ...deployment.env, GROUP_ID: `${deployment.env.GROUP_ID}${round}` }
        runs.push(await forward(run, env))
      }
    }
    await receiver.end()
    const [reference, figure] = [few, many].map((count) =>
      medianBy(sides.get(count)!.runs, ({ perSecond }) => perSecond),
    ) as [Drained, Drained]
    const row = (count: number, { perSecond, cpuMicros, use }: Drained) => ({
      what: `${count} destinations${cpuMicros === null ? '' : `, ${cpuMicros} µs a request`}`,
      unit: 'requests/s',
      value: perSecond,
      ...(use.shares.measured !== undefined && { cpu: use.shares.measured }),
    })
    return {
      rows: [row(many, figure), row(few, reference)],
      ratio: figure.perSecond / reference.perSecond,
      goal: 0.9,
      verdict: noVerdict([...sides.values()].flatMap(({ runs }) => runs.map(({ use }) => use))),
      text: [cpuLine(`${many}`, figure.use), cpuLine(`${few}`, reference.use)],
      detail: { calls, requests, many: sides.get(many)!.runs, few: sides.get(few)!.runs },
    }
  },
}

/** Each destination has a source of its own, and the calls go to them in turns. */
async function prepare(servers: Servers, count: number, port: number, calls: number): Promise<Deployment> {
  const deployment = await deploy(servers)
  for (let index = 0; index < count; index++) {
    const urls = Array.from({ length: urlsEach }, (_, n) => `http://127.0.0.1:${port}/${index}/${n}`)
    await deployment.destination(`destination-${index}`, `source-${index}`, urls)
  }
  await deployment.produce(calls, (index) => nthCall(index, users, `source-${index % count}`), 'backlog')
  await deployment.close()
  return deployment
}
