import type { Delivery } from '../../src/core/delivery/delivery.ts'
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
  const forwarders: SimulatedForwarder[] = []
  // The partitions are shared out evenly, whatever comes in them.
  const boundsOf = (member: number) => ({ ...scenario.bounds, group: { share: 1 / count, member } })

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
    retryScheduled: (delivery, delayMs) => forwarders[Math.floor(random() * count)]!.retry(delivery, delayMs),
    deadLetter: () => void deadLetters++,
  }

  const newCall = (): void => {
    const isOfFirst = scenario.isUneven && random() < 0.5
    const partition = isOfFirst ? 0 : Math.floor(random() * count)
    created[partition]!++
    if (isCounted(time.now)) countedCreated[partition]!++
    if (time.now < returnsAtMs) early++
    forwarders[partition]!.call(newDelivery(partition, time.now))
  }

  const nextCall = (): void => {
    if (time.now >= loadMs) return
    newCall()
    // The gaps of a Poisson process.
    time.after((-Math.log(1 - random()) / load) * 1_000, nextCall)
  }

  time.run(
    () => {
      for (let index = 0; index < count; index++)
        forwarders.push(new SimulatedForwarder(world, boundsOf(index), random() * 250))
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

function newDelivery(partition: number, at: number): Delivery {
  return {
    id: '',
    messageId: '',
    sourceId: 'shop',
    destinationId: 'crm',
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
