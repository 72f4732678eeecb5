import type { Seat } from '../fleet.ts'
import { sessionTimeoutMs, tierSets, webhookTimeoutMs } from '../rig.ts'
import type { FaultKind } from './fault-kinds.ts'
import {
  type Fault,
  type FaultContext,
  type Injection,
  describeMs,
  pause,
  recovered,
  seconds,
  withSeat,
} from './fault.ts'

/** Beyond the webhook timeout, for publishing and the last commit; and as much again for a busy machine. */
const drainMs = webhookTimeoutMs + 2 * 5_000
/** Beyond its deadline. */
const killAfterMs = 30_000

/** SIGTERM, and the process must end in good order and in time, unless what it needs to do so is away. */
async function terminate(context: FaultContext, seat: Seat): Promise<string> {
  const began = performance.now()
  const deadlineMs = drainMs * context.patience
  const { text, inGoodOrder, tookMs } = await seat.terminate(deadlineMs + killAfterMs)
  const took = `${text} after ${(tookMs / 1_000).toFixed(1)} s`
  if ((!inGoodOrder || tookMs > deadlineMs) && !context.infrastructureFailed(began))
    context.finding(
      `${seat.name} was told to stop: ${took}, where exit code 0 within ${deadlineMs} ms is right`,
    )
  return took
}

async function restart(context: FaultContext, seat: Seat, after: string): Promise<void> {
  await pause(seconds(context.random, 0, 3))
  await seat.start()
  await recovered(context, [seat], after, 'forwarders')
}

export const forwarderFaults = {
  'forwarder-killed': {
    lock: 'forwarders',
    inject: (context) =>
      withSeat(context, context.mortals, async (seat): Promise<Injection> => {
        await seat.kill()
        await restart(context, seat, 'it was killed')
        return `${seat.name} killed`
      }),
  },
  'forwarder-stopped': {
    lock: 'forwarders',
    inject: (context) =>
      withSeat(context, context.mortals, async (seat): Promise<Injection> => {
        const how = await terminate(context, seat)
        await restart(context, seat, 'it was stopped')
        return `${seat.name} stopped: ${how}`
      }),
  },
  'forwarder-frozen': {
    lock: 'forwarders',
    inject: (context) =>
      withSeat(context, context.seats, async (seat): Promise<Injection> => {
        const ms = sessionTimeoutMs + seconds(context.random, 1, 6)
        seat.freeze()
        await pause(ms)
        seat.thaw()
        await recovered(context, [seat], 'it was frozen', 'forwarders')
        return `${seat.name} frozen for ${describeMs(ms)}`
      }),
  },
  'forwarders-rolled': {
    lock: 'forwarders',
    async inject(context) {
      const rolled: string[] = []
      for (const each of context.mortals) {
        await withSeat(context, [each], async (seat) => {
          const how = await terminate(context, seat)
          await seat.start()
          await recovered(context, [seat], 'a rolling restart', 'forwarders')
          rolled.push(`${seat.name} ${how}`)
        })
      }
      return `one after another: ${rolled.join('; ')}`
    },
  },
  'clock-skewed': {
    lock: 'forwarders',
    inject: (context) =>
      withSeat(context, context.seats, async (seat): Promise<Injection> => {
        const offset = context.random.pick([-1_000, 1_000])
        const ms = seconds(context.random, 4, 10)
        await seat.setClock(offset)
        await pause(ms)
        await seat.setClock(0)
        // Whoever is thrown out of its group for it says so by then.
        await pause(sessionTimeoutMs)
        await recovered(context, [seat], 'its clock was a second off', 'forwarders')
        return `the clock of ${seat.name} ${offset} ms off for ${describeMs(ms)}`
      }),
  },
  'clock-jumped': {
    lock: 'forwarders',
    inject: (context) =>
      withSeat(context, context.seats, async (seat): Promise<Injection> => {
        const offset = context.random.pick([-3_600_000, -60_000, 60_000, 3_600_000])
        const ms = seconds(context.random, 3, 8)
        await seat.setClock(offset)
        await pause(ms)
        await seat.setClock(0)
        // Whoever is thrown out of its group for it says so by then.
        await pause(sessionTimeoutMs)
        await recovered(context, [seat], 'its clock jumped', 'forwarders')
        return `the clock of ${seat.name} ${offset / 1_000} s off for ${describeMs(ms)}`
      }),
  },
  'tiers-changed': {
    lock: 'forwarders',
    inject: (context) =>
      withSeat(context, context.mortals, async (seat): Promise<Injection> => {
        const before = seat.tiers
        seat.tiers = context.random.pick(tierSets.filter((set) => set !== before))
        await terminate(context, seat)
        await restart(context, seat, 'its tiers were changed')
        return `${seat.name} from ${before} to ${seat.tiers}`
      }),
  },
  'registry-away': {
    lock: 'registry',
    inject: (context) =>
      withSeat(context, context.mortals, async (seat): Promise<Injection> => {
        const { rig, random } = context
        await (random.chance(0.5) ? rig.registry.kill() : rig.registry.stop())
        // Who runs knows the schemas already: one that starts meanwhile does not.
        await seat.kill()
        await seat.start()
        await pause(seconds(random, 4, 10))
        if ((await seat.ask('readyz')) === 200)
          context.finding(`${seat.name} says that it takes work, without ever having seen a schema`)
        await rig.startRegistry()
        await recovered(context, [seat], 'the registry is back', 'forwarders')
        return `the registry away while ${seat.name} starts`
      }),
  },
} satisfies Partial<Record<FaultKind, Fault>>
