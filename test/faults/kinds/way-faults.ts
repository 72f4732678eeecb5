import type { Samples } from '../../support/exposition.ts'
import type { Seat } from '../fleet.ts'
import { destinationBehind, outages, type GoesAway } from '../load/outages.ts'
import type { FaultKind } from './fault-kinds.ts'
import { type Fault, type FaultContext, type Injection, describeMs, pause, seconds } from './fault.ts'

/** So long after it is back the first call has been taken that needed it, in ms: times the run's patience. */
const backMs = 30_000
/** Failures in a row that open a breaker. */
const breakerFailures = 20
/** The endpoint's own failures. */
const ownOutcomes = ['timeout', 'network', 'tls', 'status_5xx', 'status_429', 'status_4xx'] as const

/** Of a destination, what one forwarder has counted so far. */
interface Counted {
  pid: number
  isOpen: boolean
  putOffByBreaker: number
  ownFailures: number
  /** Deferred for the want of a token, or failed at the proxy. */
  waited: number
}

function countedIn(samples: Samples, pid: number, destination: string): Counted {
  const its = `{destination="${destination}"`
  const attempts = (outcome: string) =>
    samples.get(`postrider_webhook_attempts_total${its},outcome="${outcome}"}`) ?? 0
  const deferrals = (reason: string) =>
    samples.get(`postrider_deferrals_total${its},reason="${reason}"}`) ?? 0
  return {
    pid,
    isOpen: samples.get(`postrider_endpoint_breaker_open${its},url_id="u1"}`) === 1,
    putOffByBreaker: deferrals('breaker'),
    ownFailures: ownOutcomes.reduce((sum, outcome) => sum + attempts(outcome), 0),
    waited: deferrals('no_token') + attempts('proxy'),
  }
}

async function countedBy(seats: readonly Seat[], destination: string): Promise<Map<string, Counted>> {
  const found = new Map<string, Counted>()
  await Promise.all(
    seats.map(async (seat) => {
      const { pid } = seat
      const samples = pid === null || seat.frozen ? null : await seat.samples()
      if (samples && pid === seat.pid) found.set(seat.name, countedIn(samples, pid!, destination))
    }),
  )
  return found
}

/**
 * What a destination's requests need is away for a while, and comes back: its calls wait meanwhile, its endpoint is not
 * charged with it, and they go on soon. Whether all of them arrived is judged at the end.
 */
async function goAway(context: FaultContext, what: GoesAway): Promise<Injection> {
  const { seats, receivers, random, rig, patience, step, finding, infrastructureFailed } = context
  const destination = destinationBehind[what]
  const outage = random.pick(outages)
  const ms = seconds(random, 4, 8)
  const began = performance.now()
  const before = await countedBy(seats, destination)
  receivers.become(what, outage)
  step(`the ${what} ${outage}`)
  await pause(ms)
  const after = await countedBy(seats, destination)
  receivers.become(what, null)
  const backAt = Date.now()
  const requestsBefore = receivers.counts().requests
  let waited = 0
  for (const [name, then] of before) {
    const now = after.get(name)
    if (now?.pid !== then.pid) continue
    waited += now.waited - then.waited
    const putOff = now.putOffByBreaker - then.putOffByBreaker
    const failures = now.ownFailures - then.ownFailures
    if (putOff > 0 && !then.isOpen && failures < breakerFailures)
      finding(
        `${name} charged ${destination} with its ${what}, which was away: ${putOff} calls put off by its breaker, ${failures} failures of its own`,
      )
  }
  step(`waits for a call that comes to ${destination}`)
  const boundMs = backMs * patience
  while (receivers.takenAt(what) < backAt && Date.now() < backAt + boundMs) await pause(250)
  const isBack = receivers.takenAt(what) >= backAt
  // Whoever restarts, cannot read calls or gets no time from the machine sends none to others either.
  const nothingCame = receivers.counts().requests === requestsBefore
  const isHeldUp = infrastructureFailed(began) || nothingCame || seats.every(({ busy }) => busy)
  if (!isBack && !isHeldUp) finding(`nothing comes to ${destination} ${boundMs} ms after its ${what} is back`)
  // The next one must not take up what is left of the windows of those that waited.
  await pause(rig.windowMs / 3)
  const first = isBack
    ? `the first call ${describeMs(receivers.takenAt(what) - backAt)} later`
    : 'no call since'
  return `the ${what} ${outage} for ${describeMs(ms)}: ${waited} times a call waited for it; ${first}`
}

export const wayFaults = {
  'tokens-away': { lock: 'ways', inject: (context) => goAway(context, 'token endpoint') },
  'proxy-away': { lock: 'ways', inject: (context) => goAway(context, 'proxy') },
} satisfies Partial<Record<FaultKind, Fault>>
