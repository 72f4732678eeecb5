import { nthCall } from '../calls.ts'
import { cpuLine, forward, noVerdict, warmUpOf, type Drained } from '../measure/drain.ts'
import { costOf, medianBy } from '../measure/figures.ts'
import { startReceiver } from '../receiver.ts'
import { deploy, type Deployment } from '../rig.ts'
import { atMost, type Workload } from './workload.ts'

const users = 10_000
const events = 100
const sides = { none: 'no plan', plan: `a plan of ${events} events` }
type Side = keyof typeof sides
const names = Object.keys(sides) as Side[]

const eventOf = (index: number): string => `Event ${index % events}`

/** Of the calls' properties, with a pattern, an enum, a bound and a list. */
const properties = {
  type: 'object',
  required: ['orderId', 'total', 'currency'],
  properties: {
    orderId: { type: 'string', pattern: '^order-[0-9]+$' },
    total: { type: 'number', minimum: 0 },
    currency: { enum: ['EUR', 'USD', 'GBP'] },
    products: { type: 'array', items: { type: 'string' } },
  },
  additionalProperties: false,
}

async function addPlan({ execute }: Deployment): Promise<void> {
  const planned = Object.fromEntries(
    Array.from({ length: events }, (_, index) => [eventOf(index), { properties }]),
  )
  await execute({ type: 'create_plan', id: 'web', name: 'Web', events: planned, unknownEvents: 'block' })
  await execute({ type: 'update_source', id: 'shop', plan: 'web', planMode: 'block' })
}

/** What it costs to check every call, by the same forwarder on the same backlog, in turns. No call violates the plan. */
export const plans: Workload = {
  name: 'plans',
  summary: `every call is checked by a tracking plan of ${events} events; reference: the same forwarder without a plan`,
  sizes: { calls: 200_000, rounds: 5 },
  quick: { calls: 20_000, rounds: 1 },
  async run(servers, { calls, rounds }) {
    const receiver = startReceiver()
    const { port } = await receiver.reported('listening')
    const env = {} as Record<Side, Record<string, string>>
    for (const side of names) {
      const deployment = await deploy(servers)
      await deployment.destination('crm', 'shop', [`http://127.0.0.1:${port}/hook`])
      if (side === 'plan') await addPlan(deployment)
      await deployment.produce(
        calls!,
        (index) => ({ ...nthCall(index, users), event: eventOf(index) }),
        `backlog, ${sides[side]}`,
      )
      env[side] = deployment.env
      await deployment.close()
    }
    const run = { servers, receiver, requests: calls!, warmUp: warmUpOf(calls!) }
    const runs: Record<Side, Drained[]> = { none: [], plan: [] }
    for (let round = 0; round < rounds!; round++) {
      // Each goes first in turn, for a machine that slows down does so in one direction.
      for (const [index] of names.entries()) {
        const side = names[(index + round) % names.length]!
        const GROUP_ID = `${env[side].GROUP_ID}${round}`
        runs[side].push(await forward(run, { ...env[side], GROUP_ID }))
      }
    }
    await receiver.end()
    const middle = (side: Side) => medianBy(runs[side], ({ perSecond }) => perSecond)
    const cpu = costOf(runs.plan, runs.none, ({ cpuMicros }) => cpuMicros)
    const speed = costOf(runs.plan, runs.none, ({ perSecond }) => 1 / perSecond)
    return {
      rows: names.map((side) => {
        const { perSecond, cpuMicros, use } = middle(side)
        return {
          what: `${sides[side]}${cpuMicros === null ? '' : `, ${cpuMicros} µs each`}`,
          unit: 'calls/s',
          value: perSecond,
          ...(use.shares.measured !== undefined && { cpu: use.shares.measured }),
        }
      }),
      ratio: middle('plan').perSecond / middle('none').perSecond,
      goal: null,
      goals: [atMost('cost of a plan, % of a call’s CPU', cpu ?? speed!, 5)],
      verdict: noVerdict(names.flatMap((side) => runs[side].map(({ use }) => use))),
      text: [
        `  cost in % of the CPU (of the speed): ${cpu ?? '–'} (${speed})`,
        ...names.map((side) => cpuLine(sides[side], middle(side).use)),
      ],
      detail: { calls, users, events, costs: { cpu, speed }, runs },
    }
  },
}
