// What the settings form holds: a destination as texts, and back to what the API takes. Pure.
import { callTypes, type CallType } from '../../../../../core/call/analytics-call.ts'
import type { DestinationAnswer } from '../../../api/routes.ts'

export const chosenTypes = callTypes.filter((type) => type !== 'delete')

/** A list is a text with a line for each; what is empty stands for null. */
export interface Draft {
  name: string
  sourceIds: string
  urls: readonly string[]
  deliverTo: DestinationAnswer['deliverTo']
  /** All of them: no choice. */
  types: readonly CallType[]
  events: string
  where: string
  drop: string
  maxRate: string
  maxInFlight: string
  standardWebhooks: boolean
  traceContext: boolean
}

export const draftOf = (destination: DestinationAnswer): Draft => ({
  name: destination.name,
  sourceIds: destination.sourceIds.join('\n'),
  urls: destination.urls.map(({ url }) => url),
  deliverTo: destination.deliverTo,
  types: destination.types ?? chosenTypes,
  events: (destination.events ?? []).join('\n'),
  where: destination.where ?? '',
  drop: (destination.drop ?? []).join('\n'),
  maxRate: destination.maxRate ?? '',
  maxInFlight: destination.maxInFlight === null ? '' : String(destination.maxInFlight),
  standardWebhooks: destination.standardWebhooks,
  traceContext: destination.traceContext,
})

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
const orNull = (text: string): string | null => (text.trim() === '' ? null : text.trim())
const listOrNull = (text: string): string[] | null => (linesOf(text).length === 0 ? null : linesOf(text))

/** A field as the API takes it. */
const values: { [F in keyof Draft]: (draft: Draft) => unknown } = {
  name: ({ name }) => name.trim(),
  sourceIds: ({ sourceIds }) => linesOf(sourceIds),
  urls: ({ urls }) =>
    urls
      .map((url) => url.trim())
      .filter(Boolean)
      .map((url) => ({ url })),
  deliverTo: ({ deliverTo }) => deliverTo,
  types: ({ types }) =>
    types.length === chosenTypes.length ? null : chosenTypes.filter((each) => types.includes(each)),
  events: ({ events }) => listOrNull(events),
  where: ({ where }) => orNull(where),
  drop: ({ drop }) => listOrNull(drop),
  maxRate: ({ maxRate }) => orNull(maxRate),
  // What is no number is left to the API to refuse.
  maxInFlight: ({ maxInFlight }) => (maxInFlight.trim() === '' ? null : Number(maxInFlight)),
  standardWebhooks: ({ standardWebhooks }) => standardWebhooks,
  traceContext: ({ traceContext }) => traceContext,
}

export type DraftField = keyof Draft
export const draftFields = Object.keys(values) as DraftField[]

export const labels: Record<DraftField, string> = {
  name: 'Name',
  sourceIds: 'Sources',
  urls: 'URLs',
  deliverTo: 'Deliver to',
  types: 'Call types',
  events: 'Events',
  where: 'Condition',
  drop: 'Left out of the body',
  maxRate: 'Rate limit',
  maxInFlight: 'Requests in flight',
  standardWebhooks: 'Standard Webhooks headers',
  traceContext: 'Trace context',
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

/** The fields that two drafts do not share. */
export const changedFields = (before: Draft, after: Draft): DraftField[] =>
  draftFields.filter((field) => !same(values[field](before), values[field](after)))

/** The body of a PATCH that changes nothing else. */
export const bodyOf = (draft: Draft, fields: readonly DraftField[]): Record<string, unknown> =>
  Object.fromEntries(fields.map((field) => [field, values[field](draft)]))

/** The changes of somebody, on top of a newer version. */
export const rebased = (newest: Draft, edited: Draft, fields: readonly DraftField[]): Draft => ({
  ...newest,
  ...Object.fromEntries(fields.map((field) => [field, edited[field]])),
})

/** A field for people. */
export function shownText(field: DraftField, draft: Draft): string {
  const value = values[field](draft)
  if (field === 'deliverTo') return value === 'any' ? 'any one URL is enough' : 'every URL'
  if (field === 'types' && value === null) return 'all'
  if (field === 'events' && value === null) return 'all'
  if (field === 'where' && value === null) return 'none: all calls'
  if (value === null) return 'none'
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  if (field === 'urls') return draft.urls.filter(Boolean).join('\n')
  return Array.isArray(value) ? value.join('\n') : String(value)
}
