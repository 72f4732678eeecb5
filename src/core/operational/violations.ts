import type { ViolationCount } from '../ledger/delivery-event.ts'
import { type OperationalEvent, timeText } from './operational-event.ts'

/** Violations of one event and path at one source; alike ones are counted together. */
export function planViolation({ messageIds: _, ...violation }: ViolationCount): OperationalEvent {
  const { sourceId, planId, mode, event, path, rule, count, lastAt } = violation
  const cause = `plan:${JSON.stringify([sourceId, event, path])}`
  return {
    name: 'Plan Violated',
    identity: `${cause}/${lastAt}`,
    cause,
    at: lastAt,
    destination: null,
    properties: {
      ...{ source: sourceId, plan: planId, event, path, rule, mode, count },
      until: timeText(lastAt),
    },
  }
}
