import { until } from '../support/deployment.ts'
import type { FaultKind } from './fault-kinds.ts'
import type { Fault, FaultContext } from './fault.ts'
import { pause, recovered, seconds } from './fault.ts'

const exitMs = 60_000
/** A forwarder notices within two thirds of its session, and a machine may be busy. */
const noticeMs = 45_000

const describe = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
const running = (context: FaultContext) =>
  context.seats.filter((seat) => seat.pid !== null && !seat.frozen && !seat.busy)

/** With the broker away, nobody may say that it takes work, and everybody must say that it lives. */
async function tellsTheTruth(context: FaultContext): Promise<void> {
  await Promise.all(
    running(context).map(async (seat) => {
      try {
        await until(async () => (await seat.ask('readyz')) !== 200 || seat.busy, noticeMs * context.patience)
        if (!seat.busy && (await seat.ask('healthz')) !== 200 && !seat.busy)
          context.finding(`${seat.name} does not say that it lives, with the broker away`)
      } catch {
        context.finding(`${seat.name} says that it takes work, with the broker away`)
      }
    }),
  )
}

/** Away for at least so long, and until everybody has noticed. */
async function away(context: FaultContext, leastMs: number): Promise<number> {
  const began = performance.now()
  await Promise.all([pause(leastMs), tellsTheTruth(context)])
  return performance.now() - began
}

async function back(context: FaultContext, after: string): Promise<void> {
  await context.rig.startBroker()
  await recovered(context, running(context), after, 'infrastructure')
}

export async function longOutage(context: FaultContext, ms: number): Promise<string> {
  await context.rig.broker.stop(30_000)
  await away(context, ms)
  await back(context, 'a long outage of the broker')
  return `the broker away for ${describe(ms)}`
}

export const brokerFaults = {
  'broker-restarted': {
    lock: 'infrastructure',
    async inject(context) {
      await context.rig.broker.stop(30_000)
      const ms = await away(context, seconds(context.random, 0, 5))
      await back(context, 'the broker was restarted')
      return `the broker stopped, and away for ${describe(ms)}`
    },
  },
  'broker-killed': {
    lock: 'infrastructure',
    async inject(context) {
      await context.rig.broker.kill()
      await pause(seconds(context.random, 0, 5))
      await back(context, 'the broker was killed')
      return 'the broker killed'
    },
  },
  'disk-full': {
    lock: 'infrastructure',
    async inject(context) {
      const { rig } = context
      if (!rig.disk) return { notInjected: rig.diskProblem! }
      let ended: string
      try {
        await rig.disk.fill(64 * 1024)
        ended = await until(() => !rig.broker.isRunning(), exitMs).then(
          () => 'it ended by itself',
          () => 'it went on, and was killed',
        )
      } finally {
        await rig.broker.kill()
        await rig.disk.empty()
        await back(context, 'its disk was full')
      }
      return `no room on the disk of the broker: ${ended}`
    },
  },
  'connections-cut': {
    lock: 'infrastructure',
    async inject(context) {
      const times = context.random.between(1, 4)
      let cut = 0
      for (let left = times; left > 0; left--) {
        cut += context.rig.proxy.connections()
        context.rig.proxy.cut()
        await pause(seconds(context.random, 0, 2))
      }
      await recovered(context, running(context), 'connections were cut', 'infrastructure')
      return `${cut} connections cut, ${times} times`
    },
  },
  'network-away': {
    lock: 'infrastructure',
    async inject(context) {
      const ms = seconds(context.random, 1, 10)
      context.rig.proxy.cut(true)
      await pause(ms)
      context.rig.proxy.heal()
      await recovered(context, running(context), 'the network was away', 'infrastructure')
      return `no connection to the broker for ${describe(ms)}`
    },
  },
  'network-stalled': {
    lock: 'infrastructure',
    async inject(context) {
      const ms = seconds(context.random, 2, 12)
      context.rig.proxy.stall()
      await pause(ms)
      context.rig.proxy.heal()
      await recovered(context, running(context), 'the network stood still', 'infrastructure')
      return `nothing passed on for ${describe(ms)}`
    },
  },
  'network-slow': {
    lock: 'infrastructure',
    async inject(context) {
      const ms = seconds(context.random, 4, 10)
      const delayMs = context.random.between(20, 400)
      context.rig.proxy.delay(delayMs)
      await pause(ms)
      context.rig.proxy.heal()
      await recovered(context, running(context), 'the network was slow', 'infrastructure')
      return `${delayMs} ms each way for ${describe(ms)}`
    },
  },
} satisfies Partial<Record<FaultKind, Fault>>
