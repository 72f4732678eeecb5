import type { BrokerSeat } from '../watch/cluster.ts'
import { back, namesOf, reportsTheTruth, running } from './broker-faults.ts'
import type { FaultKind } from './fault-kinds.ts'
import { type Fault, type FaultContext, describeMs, pause, recovered, seconds } from './fault.ts'

/** Replicas of a broker that was away read up to the others within this time, or something is wrong. */
const wholeMs = 120_000
/** The brokers count one as gone after 6 s without a sign of life, and a request is given up after 30 s. */
const frozenMs = { session: [8, 14], request: [32, 38] } as const

/** Waits until every replica is in sync; where that does not come about nothing else can be tried. */
async function whole({ rig, patience, step }: FaultContext): Promise<void> {
  step('waits until all replicas are in sync')
  await rig.state.whole(wholeMs * patience)
}

/** SIGTERM, some time away, and back. */
async function restart(context: FaultContext, seat: BrokerSeat, awayMs: number): Promise<void> {
  const { cluster } = context.rig
  await cluster.stop(seat)
  await pause(awayMs)
  await cluster.start(seat)
}

async function roll(context: FaultContext, between: () => Promise<void>): Promise<void> {
  for (let round = 0; round < context.rounds; round++)
    for (const seat of context.random.shuffled(context.rig.cluster.seats)) {
      await restart(context, seat, seconds(context.random, 0, 3))
      await between()
    }
}

const after = async (context: FaultContext, what: string): Promise<void> => {
  await back(context, what)
  await whole(context)
}

export const clusterFaults = {
  'brokers-rolled': {
    lock: 'infrastructure',
    async inject(context) {
      await roll(context, () => whole(context))
      await after(context, 'a rolling restart of the brokers')
      return `every broker stopped and started again, ${context.rounds} times around, each once all replicas were in sync`
    },
  },
  'brokers-rolled-fast': {
    lock: 'infrastructure',
    async inject(context) {
      const waitMs = seconds(context.random, 1, 3)
      await roll(context, () => pause(waitMs))
      await after(context, 'a fast rolling restart of the brokers')
      return `every broker stopped and started again, ${context.rounds} times around, ${describeMs(waitMs)} apart`
    },
  },
  'leader-killed': {
    lock: 'infrastructure',
    async inject(context) {
      const { cluster, state } = context.rig
      context.step('asks who leads most partitions')
      const seat = await state.leaderOfMost()
      const ms = seconds(context.random, 2, 12)
      context.step(`kills ${seat.name}`)
      await cluster.kill(seat)
      context.step(`${seat.name} is away`)
      await pause(ms)
      await after(context, 'the leader of most partitions was killed')
      return `${seat.name}, which led most partitions, killed, and away for ${describeMs(ms)}`
    },
  },
  'broker-frozen': {
    lock: 'infrastructure',
    async inject(context) {
      const { cluster, state } = context.rig
      const { random } = context
      const seat = random.chance(0.5) ? await state.leaderOfMost() : random.pick(cluster.seats)
      const [min, max] = random.chance(0.7) ? frozenMs.session : frozenMs.request
      const ms = seconds(random, min, max)
      const thaw = cluster.freeze(seat)
      try {
        await pause(ms)
      } finally {
        thaw()
      }
      await after(context, 'a broker was frozen')
      return `${seat.name} frozen for ${describeMs(ms)}`
    },
  },
  'brokers-gone': {
    lock: 'infrastructure',
    async inject(context) {
      const { cluster } = context.rig
      const { random } = context
      const gone = random.shuffled(cluster.seats).slice(1)
      const isCrash = random.chance(0.5)
      await Promise.all(gone.map((seat) => (isCrash ? cluster.kill(seat) : cluster.stop(seat))))
      const began = performance.now()
      // A console whose topics the broker that is left leads reads on, and shows what there is.
      const writing = running(context).filter((seat) => seat !== context.console)
      await Promise.all([pause(seconds(random, 5, 15)), reportsTheTruth(context, writing)])
      const ms = performance.now() - began
      await after(context, 'two of three brokers were gone')
      return `${namesOf(gone)} ${isCrash ? 'killed' : 'stopped'}, and away for ${describeMs(ms)}`
    },
  },
  'coordinator-restarted': {
    lock: 'infrastructure',
    async inject(context) {
      const { rig, random } = context
      const { groupId } = rig.config
      const group = random.pick([groupId, `${groupId}.retries`])
      const seat = await rig.state.coordinatorOf(group)
      const isCrash = random.chance(0.3)
      await (isCrash ? rig.cluster.kill(seat) : rig.cluster.stop(seat))
      await pause(seconds(random, 0, 4))
      await after(context, 'the coordinator was restarted')
      return `${seat.name}, which coordinated ${group}, ${isCrash ? 'killed' : 'stopped'}`
    },
  },
  'controller-restarted': {
    lock: 'infrastructure',
    async inject(context) {
      const { rig, random } = context
      const seat = await rig.state.controller()
      const isCrash = random.chance(0.3)
      await (isCrash ? rig.cluster.kill(seat) : rig.cluster.stop(seat))
      await pause(seconds(random, 0, 4))
      await after(context, 'the controller was restarted')
      return `${seat.name}, which led the controllers, ${isCrash ? 'killed' : 'stopped'}`
    },
  },
  'broker-unreachable': {
    lock: 'infrastructure',
    async inject(context) {
      const { rig, random } = context
      const { proxy, ...seat } = random.pick(rig.cluster.seats)
      const how = random.pick(['stalls', 'refuses', 'is slow'] as const)
      const ms = random.chance(0.8) ? seconds(random, 4, 15) : seconds(random, 32, 38)
      const delayMs = random.between(300, 1_500)
      await rig.cluster.during({ ...seat, proxy }, `unreachable: ${how}`, async () => {
        if (how === 'stalls') proxy.stall()
        else if (how === 'refuses') proxy.cut(true)
        else proxy.delay(delayMs)
        await pause(ms)
        proxy.heal()
      })
      await recovered(context, running(context), 'a broker could not be reached', 'infrastructure')
      return `the way to ${seat.name} ${how}${how === 'is slow' ? ` by ${delayMs} ms` : ''} for ${describeMs(ms)}`
    },
  },
} satisfies Partial<Record<FaultKind, Fault>>
