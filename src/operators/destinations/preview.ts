// What a change of a destination does to the requests of calls that came in, before it is made.
import { z } from 'zod'
import { callTypes, type AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { Destination } from '../../core/settings/settings.ts'
import { Unrenderable } from '../../core/shape/text-template.ts'
import { leftOutOf } from './calls.ts'
import type { SampleResult, SampleTerms } from './destinations.ts'

/** The newest calls that are wanted, the newest first. Rejects with `kafka_unavailable`, `registry_unavailable`, `setup`. */
export type NewestCalls = (
  isWanted: (call: AnalyticsCall) => boolean,
  most: number,
  signal: AbortSignal,
) => Promise<AnalyticsCall[]>

const maxPreviewed = 10

export const shownRequest = z
  .object({
    method: z.string(),
    url: z.string().describe('As it is asked for.'),
    headers: z.array(z.object({ name: z.string(), value: z.string() })),
    body: z.string(),
  })
  .describe('As it goes out, without the values of static headers.')

const previewed = z
  .object({
    requests: z.array(shownRequest).describe('One for each URL.'),
    refusal: z.string().nullable().describe('Why there is none.'),
  })
  .meta({ id: 'PreviewedRequests' })
type Previewed = z.output<typeof previewed>

export const previewSchema = z
  .object({
    data: z.array(
      z.object({
        messageId: z.string(),
        type: z.enum(callTypes),
        event: z.string().nullable(),
        isChanged: z.boolean(),
        before: previewed,
        after: previewed,
      }),
    ),
    changed: z.number().int().describe('How many of them differ.'),
  })
  .meta({ id: 'DestinationPreview' })
export type PreviewView = z.output<typeof previewSchema>

interface PreviewServices {
  newestCalls: NewestCalls
  sendSample(destination: Destination, terms: SampleTerms): Promise<SampleResult[]>
}

/** Of the newest calls that the changed destination gets. */
export async function previewOf(
  before: Destination,
  after: Destination,
  { newestCalls, sendSample }: PreviewServices,
  signal: AbortSignal,
): Promise<PreviewView> {
  const leftOut = leftOutOf(after)
  // Thousands of deletions would hide all others.
  const gets = (call: AnalyticsCall) => call.type !== 'delete' && leftOut(call) === null
  const requestsOf = async (destination: Destination, call: AnalyticsCall): Promise<Previewed> => {
    try {
      const results = await sendSample(destination, { call, dryRun: true })
      return { requests: results.map(({ request }) => request), refusal: null }
    } catch (error) {
      if (!(error instanceof Unrenderable)) throw error
      return { requests: [], refusal: error.message }
    }
  }
  const calls = (await newestCalls(gets, maxPreviewed, signal)) as PreviewedCall[]
  const data = await Promise.all(
    calls.map(async (call) => {
      const both = { before: await requestsOf(before, call), after: await requestsOf(after, call) }
      const { messageId, type, event } = call
      return { messageId, type, event, isChanged: !isSame(both.before, both.after), ...both }
    }),
  )
  return { data, changed: data.filter(({ isChanged }) => isChanged).length }
}

/** `checkCall` has accepted it. */
type PreviewedCall = AnalyticsCall & { type: (typeof callTypes)[number] }

/** Headers of the moment (`webhook-timestamp`) are no change of the destination. */
const isSame = (one: Previewed, other: Previewed): boolean =>
  one.refusal === other.refusal && JSON.stringify(settled(one)) === JSON.stringify(settled(other))

const ofTheMoment = new Set(['webhook-timestamp', 'webhook-signature'])
const settled = ({ requests }: Previewed) =>
  requests.map(({ headers, ...request }) => ({
    ...request,
    headers: headers.filter(({ name }) => !ofTheMoment.has(name.toLowerCase())),
  }))
