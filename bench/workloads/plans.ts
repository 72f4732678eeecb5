import { Child } from '../child.ts'
import { nthCall } from '../calls.ts'
import { round2 } from '../measure/figures.ts'
import { eventCount, eventOf, plannedEvents } from '../planned-events.ts'
import { measuredCore } from '../rig.ts'
import { withAndWithout } from './with-and-without.ts'
import { atMost } from './workload.ts'

const users = 10_000

/** CPU of a call's check, in µs, with nothing around it. */
async function checkAlone(): Promise<number> {
  const work = new Child('plan-work.ts', { core: measuredCore })
  const { plan, none } = await work.reported('checked')
  await work.end()
  return plan! - none!
}

/** No call violates the plan. */
export const plans = withAndWithout({
  name: 'plans',
  summary: `every call is checked by a tracking plan of ${eventCount} events; reference: the same forwarder without a plan`,
  sides: { without: 'no plan', with: `a plan of ${eventCount} events` },
  async setUp({ execute }) {
    const events = plannedEvents()
    await execute({ type: 'create_plan', id: 'web', name: 'Web', events, unknownEvents: 'block' })
    await execute({ type: 'update_source', id: 'shop', plan: 'web', planMode: 'block' })
  },
  callOf: (index) => ({ ...nthCall(index, users), event: eventOf(index) }),
  async goals({ cost, cheapestMicros }) {
    const alone = round2(((await checkAlone()) / cheapestMicros) * 100)
    return [
      atMost('cost of a plan, % of a call’s CPU', cost, 5),
      atMost('the check alone, % of a call’s CPU', alone, 5),
    ]
  },
})
