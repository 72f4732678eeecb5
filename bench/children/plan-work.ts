// What a tracking plan costs a call by itself: its event is looked up, its properties are parsed and checked. With a plan
// and without one, in turns within one process, by CPU time: the difference is far below what two runs of a forwarder
// differ by.
import { compileSchema } from '../../src/adapters/json-schema/compile-schema.ts'
import { defaultSourceOptions } from '../../src/core/settings/source-options.ts'
import { PlanWatch } from '../../src/forwarder/plan/plan-watch.ts'
import { nthCall } from '../calls.ts'
import { eventOf, plannedEvents } from '../planned-events.ts'

const perTurn = 2_000
const turns = 400
const sides = ['plan', 'none'] as const
type Side = (typeof sides)[number]

const sourceOf = (id: Side) => ({
  ...{ id, name: id, writeKey: id, enabled: true },
  ...defaultSourceOptions,
  ...{ plan: id === 'plan' ? 'web' : null, planMode: 'block' as const },
})
const web = { id: 'web', name: 'Web', unknownEvents: 'block' as const, removed: false }
const watch = new PlanWatch({
  compileSchema,
  ledger: { planViolations() {} },
  metrics: { planViolations() {} },
  log: { error() {} },
})
watch.apply({
  sources: new Map(sides.map((side) => [side, sourceOf(side)])),
  plans: new Map([['web', { ...web, events: plannedEvents() }]]),
  computations: new Map(),
})
const place = () => ({ topic: 'analytics.calls', partition: 0, offset: 0 })
const callsOf = (side: Side) =>
  Array.from({ length: perTurn }, (_, index) => ({ ...nthCall(index, 1_000, side), event: eventOf(index) }))
const calls = { plan: callsOf('plan'), none: callsOf('none') }

const spent = { plan: 0, none: 0 }
for (let turn = -turns; turn < turns; turn++) {
  for (const side of turn % 2 === 0 ? sides : sides.toReversed()) {
    const before = process.threadCpuUsage()
    for (const call of calls[side])
      if (watch.findingsOf(call, place) !== null) throw new Error('a call violates its plan')
    const { user, system } = process.threadCpuUsage(before)
    // The first half is for the compiler.
    if (turn >= 0) spent[side] += user + system
  }
}
const microsOf = (side: Side) => spent[side] / (turns * perTurn)
process.send!({ kind: 'checked', plan: microsOf('plan'), none: microsOf('none') })
process.on('disconnect', () => process.exit())
