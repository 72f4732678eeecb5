import { until } from '../../support/until.ts'
import type { BrokerSeat } from '../watch/cluster.ts'
import type { FaultKind } from './fault-kinds.ts'
import { type Fault, type FaultContext, describeMs, pause, recovered, seconds } from './fault.ts'

const exitMs = 60_000
/** A forwarder notices within two thirds of its session, and a machine may be busy. */
const noticeMs = 45_000
/** How often a fault that can be of one broker is of all of them, where there are three. */
const allShare = 0.3

export const running = (context: FaultContext) =>
  context.parts.filter((seat) => seat.pid !== null && !seat.frozen && !seat.busy)

/** With too many brokers away, none of these may say that it takes work, and all of them must say that they live. */
export async function reportsTheTruth(context: FaultContext, seats = running(context)): Promise<void> {
  await Promise.all(
    seats.map(async (seat) => {
      try {
        await until(async () => (await seat.ask('readyz')) !== 200 || seat.busy, noticeMs * context.patience)
        if (!seat.busy && (await seat.ask('healthz')) !== 200 && !seat.busy)
          context.finding(`${seat.name} does not say that it lives, with the brokers away`)
      } catch {
        context.finding(`${seat.name} says that it takes work, with the brokers away`)
      }
    }),
  )
}

/** Away for at least so long, and until everybody has noticed. */
async function away(context: FaultContext, minMs: number): Promise<number> {
  const began = performance.now()
  await Promise.all([pause(minMs), reportsTheTruth(context)])
  return performance.now() - began
}

/** All brokers run again, and so does everybody who needs them. */
export async function back(context: FaultContext, after: string): Promise<void> {
  context.step('starts the brokers')
  await context.rig.cluster.startAll()
  await recovered(context, running(context), after, 'infrastructure')
}

/** One broker, or all of them. */
function some({ rig, random }: FaultContext): readonly BrokerSeat[] {
  const { seats } = rig.cluster
  return random.chance(allShare) ? seats : [random.pick(seats)]
}

export const namesOf = (seats: readonly BrokerSeat[]): string => seats.map(({ name }) => name).join(', ')

/** What happens to the network towards those brokers, until it is healed. */
async function onNetwork<T>(
  { rig }: FaultContext,
  seats: readonly BrokerSeat[],
  what: string,
  work: () => Promise<T>,
): Promise<T> {
  const ends = seats.map((seat) => rig.cluster.begin(seat, what))
  try {
    return await work()
  } finally {
    for (const { proxy } of seats) proxy.heal()
    for (const end of ends) end()
  }
}

export async function longOutage(context: FaultContext, ms: number): Promise<string> {
  const { cluster } = context.rig
  context.step(`keeps all brokers away for ${describeMs(ms)}`)
  await Promise.all(cluster.seats.map((seat) => cluster.stop(seat)))
  await away(context, ms)
  await back(context, 'a long outage of the brokers')
  return `all brokers away for ${describeMs(ms)}`
}

/** As in any rolling restart: nobody waits for anybody to be ready again. */
export async function restartOne({ rig, random }: FaultContext): Promise<string> {
  const { cluster } = rig
  const seat = random.pick(cluster.seats)
  const ms = seconds(random, 2, 5)
  await cluster.stop(seat)
  await pause(ms)
  await cluster.start(seat)
  return `${seat.name} stopped, and away for ${describeMs(ms)}`
}

export const brokerFaults = {
  'broker-restarted': {
    lock: 'infrastructure',
    async inject(context) {
      const { cluster } = context.rig
      const seats = some(context)
      await Promise.all(seats.map((seat) => cluster.stop(seat)))
      const minMs = seconds(context.random, 0, 5)
      const isWhole = seats.length === cluster.seats.length
      const ms = isWhole ? await away(context, minMs) : (await pause(minMs), minMs)
      await back(context, 'a broker was restarted')
      return `${namesOf(seats)} stopped, and away for ${describeMs(ms)}`
    },
  },
  'broker-killed': {
    lock: 'infrastructure',
    async inject(context) {
      const { cluster } = context.rig
      const seats = some(context)
      await Promise.all(seats.map((seat) => cluster.kill(seat)))
      await pause(seconds(context.random, 0, 5))
      await back(context, 'a broker was killed')
      return `${namesOf(seats)} killed`
    },
  },
  'disk-full': {
    lock: 'infrastructure',
    async inject(context) {
      const { cluster } = context.rig
      const seat = context.random.pick(cluster.seats)
      const { disk, node } = seat
      if (!disk) return { notInjected: cluster.diskProblem! }
      let ended: string
      try {
        await disk.fill(64 * 1024)
        ended = await cluster.during(seat, 'disk full', () =>
          until(() => !node.isRunning(), exitMs).then(
            () => 'it ended by itself',
            () => 'it went on, and was killed',
          ),
        )
      } finally {
        await cluster.kill(seat)
        await disk.empty()
        await back(context, 'its disk was full')
      }
      return `no room on the disk of ${seat.name}: ${ended}`
    },
  },
  'connections-cut': {
    lock: 'infrastructure',
    async inject(context) {
      const seats = some(context)
      const times = context.random.between(1, 4)
      let cut = 0
      await onNetwork(context, seats, 'connections cut', async () => {
        for (let left = times; left > 0; left--) {
          for (const { proxy } of seats) {
            cut += proxy.connections()
            proxy.cut()
          }
          await pause(seconds(context.random, 0, 2))
        }
      })
      await recovered(context, running(context), 'connections were cut', 'infrastructure')
      return `${cut} connections to ${namesOf(seats)} cut, ${times} times`
    },
  },
  'network-away': {
    lock: 'infrastructure',
    async inject(context) {
      const ms = seconds(context.random, 1, 10)
      const { seats } = context.rig.cluster
      await onNetwork(context, seats, 'network away', async () => {
        for (const { proxy } of seats) proxy.cut(true)
        await pause(ms)
      })
      await recovered(context, running(context), 'the network was away', 'infrastructure')
      return `no connection to any broker for ${describeMs(ms)}`
    },
  },
  'network-stalled': {
    lock: 'infrastructure',
    async inject(context) {
      const ms = seconds(context.random, 2, 12)
      const { seats } = context.rig.cluster
      await onNetwork(context, seats, 'network stalled', async () => {
        for (const { proxy } of seats) proxy.stall()
        await pause(ms)
      })
      await recovered(context, running(context), 'the network stood still', 'infrastructure')
      return `nothing passed on for ${describeMs(ms)}`
    },
  },
  'network-slow': {
    lock: 'infrastructure',
    async inject(context) {
      const ms = seconds(context.random, 4, 10)
      const delayMs = context.random.between(20, 400)
      const { seats } = context.rig.cluster
      await onNetwork(context, seats, 'network slow', async () => {
        for (const { proxy } of seats) proxy.delay(delayMs)
        await pause(ms)
      })
      await recovered(context, running(context), 'the network was slow', 'infrastructure')
      return `${delayMs} ms each way for ${describeMs(ms)}`
    },
  },
} satisfies Partial<Record<FaultKind, Fault>>
