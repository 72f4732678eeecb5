import type { Delivery } from '../../src/core/delivery/delivery.ts'
import type { Rate } from '../../src/core/pacing/token-bucket.ts'
import { DestinationLimiter } from '../../src/forwarder/destination-limits.ts'
import { steadyClock } from '../../src/forwarder/steady-clock.ts'
import type { PaceBounds } from '../../src/core/pacing/endpoint-pace.ts'
import type { RetryPolicy } from '../../src/core/delivery/disposition.ts'
import type { EndpointModel } from './endpoint-models.ts'
import { SimulatedForwarder, type World } from './simulated-forwarder.ts'
import { randomFrom, SimulatedTime } from './simulated-time.ts'

export interface Scenario {
  forwarders: number
  /** Calls a second of them all, and until when there are any, in ms. */
  load: number
  loadMs: number
  /** Calls that wait at the start. */
  backlog: number
  /** One of them gets half of the calls. */
  isUneven: boolean
  /** The time is over, in ms; it ends before if all that came was delivered after the load's end. */
  endMs: number
  /** What happens from then on until `loadMs` is counted: what is a start is over. */
  countFromMs: number
  /** When its endpoint begins to work; it has from the start: 0. */
  returnsAtMs: number
  endpoint(random: () => number): EndpointModel
  bounds: Omit<PaceBounds, 'group'>
  policy: RetryPolicy
  seed: number
  /** What the destination may get of them all, as its setting has it. */
  maxRate?: Rate
  /** Two: half of the calls go to another destination, whose URL is on the same host. */
  destinations?: 1 | 2
  /** How far their clocks are apart at most, in ms. */
  skewMs?: number
  /** One after another leaves, and a new one comes in its place, each so often, in ms. */
  replacedEveryMs?: number
}

export interface Figures {
  /** A second, while it is counted. */
  arrived: number
  succeeded: number
  /** In the second with the most. */
  peakArrived: number
  peakInFlight: number
  /** Requests for each call that was delivered. */
  attemptsPerCall: number
  calls: number
  deliveredShare: number
  deadLetters: number
  /** Jain's index over the forwarders' partitions: the share of their calls that was delivered while it was counted. */
  fairness: number
  /** A second, in the last half before its return. */
  probes: number | null
  /** From its return until 99 % of what had come before it was delivered, in s. */
  drainedAfterS: number | null
}

const body = new Uint8Array(0)

/** Runs one scenario: the same figures each time. */
export function simulate(scenario: Scenario): Figures {
  const { forwarders: count, load, loadMs, countFromMs, returnsAtMs } = scenario
  const random = randomFrom(scenario.seed)
  const time = new SimulatedTime()
  const model = scenario.endpoint(randomFrom(scenario.seed + 1))
  const arrivals = new Uint32Array(Math.ceil(scenario.endMs / 1_000) + 1)
  const created = new Float64Array(count)
  const countedCreated = new Float64Array(count)
  const countedDelivered = new Float64Array(count)
  let inFlight = 0
  let peakInFlight = 0
  let requests = 0
  let countedRequests = 0
  let countedSuccesses = 0
  let probes = 0
  let delivered = 0
  let deadLetters = 0
  let early = 0
  let earlyDelivered = 0
  let drainedAt: number | null = null
  const isCounted = (at: number): boolean => at >= countFromMs && at < loadMs
  /** Of each process what it has for each destination. */
  const forwarders: SimulatedForwarder[][] = []
  const destinations = ['crm', 'ads'].slice(0, scenario.destinations ?? 1)
  const skewOf = (index: number): number => ((scenario.skewMs ?? 0) * index) / count
  let members = 0
  // The partitions are shared out evenly, whatever comes in them.
  const newForwarder = (): SimulatedForwarder[] => {
    const bounds = { ...scenario.bounds, group: { share: 1 / count, member: members++ * 0x9e3779b1 } }
    return destinations.map(
      (id) => new SimulatedForwarder(world, bounds, random() * 250, id, limiterOf(scenario.maxRate, count)),
    )
  }
  const within = (
    index: number,
    { destinationId }: Delivery,
    does: (forwarder: SimulatedForwarder) => void,
  ): void => time.with(skewOf(index), () => does(forwarders[index]![destinations.indexOf(destinationId)]!))

  const world: World = {
    time,
    policy: scenario.policy,
    client: {
      send(_request, sink) {
        requests++
        arrivals[Math.floor(time.now / 1_000)]!++
        if (isCounted(time.now)) countedRequests++
        if (time.now >= returnsAtMs / 2 && time.now < returnsAtMs) probes++
        peakInFlight = Math.max(peakInFlight, ++inFlight)
        const outcome = model(time.now)
        time.after(outcome.durationMs, () => {
          inFlight--
          if (outcome.kind === 'success' && isCounted(time.now)) countedSuccesses++
          sink.onOutcome(outcome)
        })
      },
      close() {},
    },
    delivered({ origin }) {
      delivered++
      const at = origin.appendedAt ?? 0
      if (isCounted(at) && isCounted(time.now)) countedDelivered[origin.partition]!++
      if (at >= returnsAtMs) return
      earlyDelivered++
      if (drainedAt === null && time.now > returnsAtMs && earlyDelivered >= early * 0.99) drainedAt = time.now
    },
    // Its key decides, and keys are spread evenly over the partitions of a tier.
    retryScheduled: (delivery, delayMs) =>
      within(Math.floor(random() * count), delivery, (forwarder) => forwarder.retry(delivery, delayMs)),
    deadLetter: () => void deadLetters++,
  }

  const newCall = (): void => {
    const isOfFirst = scenario.isUneven && random() < 0.5
    const partition = isOfFirst ? 0 : Math.floor(random() * count)
    created[partition]!++
    if (isCounted(time.now)) countedCreated[partition]!++
    if (time.now < returnsAtMs) early++
    const destination = destinations.length > 1 && random() < 0.5 ? 1 : 0
    const delivery = newDelivery(destinations[destination]!, partition, time.now)
    within(partition, delivery, (forwarder) => forwarder.call(delivery))
  }

  const replaceNext = (index: number, everyMs: number): void =>
    time.after(everyMs, () => {
      const left = forwarders[index]!.flatMap((forwarder) => forwarder.leave())
      forwarders[index] = time.with(skewOf(index), newForwarder)
      for (const { delivery, delayMs, dueAt } of left)
        within(index, delivery, (forwarder) => {
          if (delayMs === null) forwarder.call(delivery)
          else forwarder.retry(delivery, delayMs, dueAt!)
        })
      replaceNext((index + 1) % count, everyMs)
    })

  const nextCall = (): void => {
    if (time.now >= loadMs) return
    newCall()
    // The gaps of a Poisson process.
    time.after((-Math.log(1 - random()) / load) * 1_000, nextCall)
  }

  time.run(
    () => {
      for (let index = 0; index < count; index++) forwarders.push(time.with(skewOf(index), newForwarder))
      if (scenario.replacedEveryMs !== undefined) replaceNext(0, scenario.replacedEveryMs)
      for (let left = scenario.backlog; left > 0; left--) newCall()
      nextCall()
    },
    scenario.endMs,
    () => time.now >= loadMs && delivered + deadLetters === sum(created),
  )
  const countedSeconds = (loadMs - countFromMs) / 1_000
  return {
    arrived: countedRequests / countedSeconds,
    succeeded: countedSuccesses / countedSeconds,
    peakArrived: Math.max(...arrivals),
    peakInFlight,
    attemptsPerCall: requests / Math.max(delivered, 1),
    calls: sum(created),
    deliveredShare: delivered / sum(created),
    deadLetters,
    fairness: jain([...countedDelivered].map((one, index) => one / Math.max(countedCreated[index]!, 1))),
    probes: returnsAtMs === 0 ? null : probes / (returnsAtMs / 2_000),
    drainedAfterS: drainedAt === null ? null : (drainedAt - returnsAtMs) / 1_000,
  }
}

function limiterOf(maxRate: Rate | undefined, forwarders: number): DestinationLimiter | null {
  if (maxRate === undefined) return null
  const limiter = new DestinationLimiter()
  limiter.change({ maxRate, maxInFlight: null }, 1, { owned: 1, all: forwarders }, steadyClock.now())
  return limiter
}

function newDelivery(destinationId: string, partition: number, at: number): Delivery {
  return {
    id: '',
    messageId: '',
    sourceId: 'shop',
    destinationId,
    userIds: [],
    type: 'track',
    body,
    filled: null,
    endpointIds: ['u1'],
    attempts: 0,
    timesScheduled: 0,
    firstAttemptAt: null,
    firstScheduledAt: null,
    notBefore: null,
    outcomes: [],
    lastResponse: null,
    lastExchange: null,
    origin: { topic: 'calls', partition, offset: 0, appendedAt: at },
  }
}

const sum = (values: Float64Array): number => values.reduce((total, value) => total + value, 0)

/** 1 when all get the same, 1/n when one gets everything (Jain, Chiu and Hawe 1984). */
function jain(values: readonly number[]): number {
  const total = values.reduce((all, value) => all + value, 0)
  const squares = values.reduce((all, value) => all + value ** 2, 0)
  return squares === 0 ? 1 : total ** 2 / (values.length * squares)
}
