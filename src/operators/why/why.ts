import { usersOf, type AnalyticsCall } from '../../core/call/analytics-call.ts'
import { copiesOf, type TracedCopy } from '../../core/ledger/call-copies.ts'
import type { DeliveryLife } from '../../core/ledger/delivery-life.ts'
import { lifeOf, type CopyLife } from '../../core/ledger/call-life.ts'
import { plansUnder } from '../../core/delivery/call-plan.ts'
import { urlIdOf } from '../../core/delivery/delivery.ts'
import type { PlannedDestination } from '../../core/ledger/delivery-event.ts'
import { placeKey, type Place, type PlanLine } from '../../core/ledger/trace.ts'
import { isoOf } from '../../core/duration.ts'
import { PostriderError } from '../../errors.ts'
import type { FactsOptions, FoundCall, MessageFacts, MessagePorts, TimedSettings, Writer } from './facts.ts'

/** One record of the calls topic and what became of it. */
export interface MessageCopy {
  place: Place
  /** When the broker appended it, epoch ms; null where retention took the record. */
  appendedAt: number | null
  writer: Writer | null
  /** A deletion request covers it: nothing more is said. */
  erased: boolean
  /** Null where retention took it, or it was erased. */
  call: AnalyticsCall | null
  /** Null where it was erased. */
  life: CopyLife | null
}

export interface MessageLife {
  messageId: string
  /** The oldest first. */
  copies: MessageCopy[]
  /** Older copies that are not shown. */
  omitted: number
  /** Epoch ms: what is older was not looked through; null: all that is kept was. */
  indexedSince: number | null
}

/** Forwarders learn of new settings within about a second. */
const learntWithinMs = 2_000
/** What a tally's time, which is a forwarder's, may differ by from the broker's. */
const clockSkewMs = 5_000

/** Throws `not_found` where no topic holds anything of it, and what the ports reject with. */
export async function lifeOfMessage(
  messageId: string,
  ports: MessagePorts,
  options: FactsOptions = {},
): Promise<MessageLife> {
  const [life] = await livesOf([messageId], ports, options)
  const { copies, indexedSince } = life!
  if (copies.length === 0)
    throw new PostriderError(
      'not_found',
      `nothing is known of messageId ${JSON.stringify(messageId)}: ${
        indexedSince === null
          ? 'no call of the last days has it'
          : `no call since ${isoOf(indexedSince)} has it, and older ones are not in the index: MESSAGE_INDEX_MB bounds it`
      }`,
    )
  return life!
}

/** Of each message, in their order; one that nobody knows has no copies. Throws what the ports reject with. */
export async function livesOf(
  messageIds: readonly string[],
  ports: MessagePorts,
  options: FactsOptions = {},
): Promise<MessageLife[]> {
  const found = await ports.facts(messageIds, options)
  // After the facts: users erased before they were read are known then.
  const erasures = await ports.erasures(options.signal)
  const lives: MessageLife[] = []
  for (const [index, facts] of found.entries())
    lives.push(await lifeBy(messageIds[index]!, facts, erasures, ports, options.signal))
  return lives
}

async function lifeBy(
  messageId: string,
  facts: MessageFacts,
  erasures: Awaited<ReturnType<MessagePorts['erasures']>>,
  ports: MessagePorts,
  signal: AbortSignal | undefined,
): Promise<MessageLife> {
  const { copies } = copiesOf(
    facts.calls.map(({ place }) => place),
    facts.callsTopic,
    facts.traces,
  )
  const recorded: MessageCopy[] = []
  const settings = await settingsOf(facts, copies, ports, signal)
  for (const copy of copies) {
    const found = foundAt(facts, copy.place)
    const head = { place: copy.place, appendedAt: found?.appendedAt ?? null }
    if (await isErased(copy, found, facts, erasures)) {
      recorded.push({ ...head, writer: null, erased: true, call: null, life: null })
      continue
    }
    const life = lifeOf({ ...copy, ...plansOf(copy, found, facts, settings), finish: facts.finish })
    for (const delivery of life.deliveries) await findPause(delivery, ports, signal)
    const { writer = null, call = null } = found ?? {}
    recorded.push({ ...head, writer, erased: false, call, life })
  }
  recorded.sort((a, b) => timeOf(a) - timeOf(b) || a.place.offset - b.place.offset)
  return { messageId, copies: recorded, omitted: facts.omitted, indexedSince: facts.indexedSince }
}

/** When the pause that holds a delivery began: the settings of the time at which it was held know it. */
async function findPause(
  delivery: DeliveryLife,
  { settingsBetween }: MessagePorts,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { state, at, destinationId, reason } = delivery
  if (state !== 'held' || at === null) return
  for (const { state } of await settingsBetween(at - learntWithinMs, at + clockSkewMs, signal)) {
    const { pause = null, endedPauses = [] } = state.destinations.get(destinationId) ?? {}
    const found = [pause, ...endedPauses].find((each) => each?.id === reason)
    if (found) delivery.pausedAt = found.since
  }
}

const foundAt = ({ calls }: MessageFacts, place: Place): FoundCall | null =>
  calls.find((found) => placeKey(found.place) === placeKey(place)) ?? null

/** What retention took comes first. */
const timeOf = ({ appendedAt }: MessageCopy): number => appendedAt ?? 0

async function isErased(
  { place, traces }: TracedCopy,
  found: FoundCall | null,
  facts: MessageFacts,
  erasures: Awaited<ReturnType<MessagePorts['erasures']>>,
): Promise<boolean> {
  if (traces.some((trace) => trace.kind === 'disposition' && trace.disposition === 'erased')) return true
  if (found) {
    const { call, appendedAt } = found
    const { sourceId, type } = call
    return erasures.covers({ sourceId: sourceId || null, type, userIds: usersOf(call), appendedAt })
  }
  const owner = await facts.ownerOf(place)
  return owner !== null && erasures.covers(owner)
}

/** When a forwarder can have planned the copy, epoch ms; null where its record is gone. */
function plannedWithin(
  { finish }: MessageFacts,
  found: FoundCall | null,
): { from: number; to: number } | null {
  if (!found) return null
  const until = finish(found.place).tally?.at ?? Infinity
  return { from: found.appendedAt - learntWithinMs, to: until + clockSkewMs }
}

/** Settings under which any of the copies without a recorded plan may have been planned. */
async function settingsOf(
  facts: MessageFacts,
  copies: readonly TracedCopy[],
  { settingsBetween }: MessagePorts,
  signal: AbortSignal | undefined,
): Promise<TimedSettings[]> {
  const spans = copies
    .filter(({ traces }) => !traces.some(({ kind }) => kind === 'planned'))
    .map(({ place }) => plannedWithin(facts, foundAt(facts, place)))
    .filter((span) => span !== null)
  if (spans.length === 0) return []
  const from = Math.min(...spans.map((span) => span.from))
  const to = Math.max(...spans.map((span) => span.to))
  return settingsBetween(from, to, signal)
}

function plansOf(
  { place, traces }: TracedCopy,
  found: FoundCall | null,
  facts: MessageFacts,
  settings: readonly TimedSettings[],
): { planBy: 'ledger' | 'settings' | null; plans: PlanLine[][] } {
  const recorded = traces.filter((trace) => trace.kind === 'planned')
  const owner = facts.finish(place).tally?.owner
  const last = recorded.find((trace) => trace.owner === owner) ?? recorded.at(-1)
  if (last) return { planBy: 'ledger', plans: [last.plan] }
  const span = plannedWithin(facts, found)
  if (!found || !span) return { planBy: null, plans: [] }
  const { call } = found
  const inForce = settings.filter(
    ({ since }, index) => since <= span.to && (settings[index + 1]?.since ?? Infinity) >= span.from,
  )
  // An owner that has not planned it yet uses the settings of that moment.
  const counting = facts.finish(place).finished || traces.length > 0 ? inForce : inForce.slice(-1)
  const plans = plansUnder(
    call,
    counting.map(({ state }) => state),
  )
  return {
    planBy: 'settings',
    plans: plans.filter((plan) => plan !== null).map((plan) => plan.map((line) => lineOf(call, line))),
  }
}

const lineOf = (
  { messageId }: AnalyticsCall,
  { destinationId, deliveryId, reason }: PlannedDestination,
): PlanLine => ({
  destinationId,
  urlId: deliveryId === null ? null : urlIdOf({ id: deliveryId, messageId, destinationId }),
  reason,
})
