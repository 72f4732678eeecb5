import { nthCall } from '../calls.ts'
import type { Deployment } from '../rig.ts'
import { withAndWithout } from './with-and-without.ts'
import { atMost } from './workload.ts'

const users = 10_000
const events = 100
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

/** No call violates the plan. */
export const plans = withAndWithout({
  name: 'plans',
  summary: `every call is checked by a tracking plan of ${events} events; reference: the same forwarder without a plan`,
  sides: { without: 'no plan', with: `a plan of ${events} events` },
  setUp: addPlan,
  callOf: (index) => ({ ...nthCall(index, users), event: eventOf(index) }),
  goals: ({ cpuCost, timeCost }) => [atMost('cost of a plan, % of a call’s CPU', cpuCost ?? timeCost, 5)],
})
