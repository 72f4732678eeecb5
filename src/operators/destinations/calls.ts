// The calls behind the steps of a destination of which nothing lists them one by one: what waits, is held or was left out.
import { z } from 'zod'
import { callTypes, type AnalyticsCall } from '../../core/call/analytics-call.ts'
import { allowsWebhooks } from '../../core/call/check-call.ts'
import { callFilter, leftOutBy, leftOutReasons, type LeftOut } from '../../core/call/filter.ts'
import { isoOf, isoOrNull } from '../../core/duration.ts'
import { CallValues } from '../../core/expression/call-values.ts'
import type { Destination } from '../../core/settings/settings.ts'
import type { WaitingCall, WaitingInTiers } from '../statistics/waiting.ts'
import type { NewestCalls } from './preview.ts'

export const callSteps = ['waiting', 'held', 'skipped'] as const

/** Of what waits or is held. */
export const maxListedCalls = 200
/** Of what is held, retries that came due since. */
export const maxHeldRetries = 100
/** Of what was left out: it says what the filter does. */
export const maxSamples = 10

export const callsQuery = z.strictObject({
  step: z
    .enum(callSteps)
    .describe('Which calls: those that wait for a retry, are held by its pause, or were skipped.'),
  reason: z.enum(leftOutReasons).optional().describe('Of `skipped`: those that were left out for it.'),
})

export const destinationCallsSchema = z
  .object({
    data: z
      .array(
        z.object({
          messageId: z.string(),
          type: z.enum(callTypes),
          event: z.string().nullable().describe('Null for a reader, and of what waits.'),
          receivedAt: z.iso.datetime().nullable(),
          reason: z.enum(leftOutReasons).nullable().describe('Why it was left out.'),
          tier: z.string().nullable().describe('The retry tier that it waits in, or waited in.'),
          dueAt: z.iso
            .datetime()
            .nullable()
            .describe('When it is tried next; of a retry that is held, when it was due.'),
          attempts: z.number().int().nullable(),
        }),
      )
      .max(maxListedCalls),
    isCut: z.boolean().describe('There may be more than was looked at, or is listed.'),
  })
  .meta({ id: 'DestinationCalls' })
export type DestinationCallsView = z.output<typeof destinationCallsSchema>

type CheckedCall = AnalyticsCall & { type: (typeof callTypes)[number] }

/**
 * Whether a destination gets a call by its settings as they are: null; why it leaves it out; or `other` where the call is
 * none that it is asked about.
 */
export function leftOutOf({
  sourceIds,
  options,
}: Pick<Destination, 'sourceIds' | 'options'>): (call: AnalyticsCall) => LeftOut['reason'] | 'other' | null {
  const sources = new Set(sourceIds)
  const { filter } = callFilter(options)
  return (call) => {
    if (!sources.has(call.sourceId) || !allowsWebhooks(call)) return 'other'
    if (filter === null) return null
    const type = call.type as CheckedCall['type']
    return leftOutBy(filter, type, call.event, () => new CallValues(call))?.reason ?? null
  }
}

interface CallsSource {
  newestCalls: NewestCalls
  waiting: Pick<WaitingInTiers, 'list' | 'held'>
}

export async function callsAt(
  destination: Destination,
  { step, reason }: z.output<typeof callsQuery>,
  hidesEvents: boolean,
  { newestCalls, waiting }: CallsSource,
  signal: AbortSignal,
): Promise<DestinationCallsView> {
  if (step === 'waiting') {
    const { calls, isCut } = await waiting.list(destination.id, maxListedCalls, signal)
    return { data: calls.map(retryView), isCut }
  }
  const { pause } = destination
  if (step === 'held' && pause === null) return { data: [], isCut: false }
  const leftOut = leftOutOf(destination)
  const isWanted = (call: AnalyticsCall) => {
    const found = leftOut(call)
    if (step === 'held') return found === null && call.receivedAt >= pause!.since
    return found !== null && found !== 'other' && (reason === undefined || found === reason)
  }
  const retries =
    step === 'held' ? (await waiting.held(destination.id, pause!.since, maxHeldRetries, signal)).calls : []
  const most = step === 'held' ? maxListedCalls - retries.length : maxSamples
  const calls = (await newestCalls(isWanted, most, signal)) as CheckedCall[]
  const data = calls.map((call) => ({
    messageId: call.messageId,
    type: call.type,
    event: hidesEvents ? null : call.event,
    receivedAt: isoOf(call.receivedAt),
    reason: step === 'held' ? null : (leftOut(call) as LeftOut['reason']),
    ...{ tier: null, dueAt: null, attempts: null },
  }))
  // No more than the newest records were looked at.
  return { data: [...retries.map(retryView), ...data], isCut: true }
}

const retryView = ({ dueAt, receivedAt, ...call }: WaitingCall): DestinationCallsView['data'][number] => ({
  ...call,
  ...{ event: null, reason: null, receivedAt: isoOrNull(receivedAt), dueAt: isoOf(dueAt) },
})
