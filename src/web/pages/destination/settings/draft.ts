// What the settings form holds: a destination as texts, and back to what the API takes. Pure.
import type { DestinationAnswer } from '../../../api/routes.ts'
import {
  editedOption,
  emptyMeans,
  optionFields,
  optionValue,
  type EditedOption,
} from '../../../components/options.ts'

const fields = optionFields.destination

export type Draft = {
  name: string
  sourceIds: readonly string[]
  urls: readonly string[]
} & { [O in (typeof fields)[number]['name']]: EditedOption }

export type DraftField = keyof Draft

export const draftOf = (destination: DestinationAnswer): Draft =>
  ({
    name: destination.name,
    sourceIds: destination.sourceIds,
    urls: destination.urls.map(({ url }) => url),
    ...Object.fromEntries(fields.map((field) => [field.name, editedOption(field, destination[field.name])])),
  }) as unknown as Draft

/** One that is not there yet: each option has its default. */
export const newDraft = (sourceIds: readonly string[]): Draft =>
  ({
    name: '',
    sourceIds,
    urls: [''],
    ...Object.fromEntries(fields.map((field) => [field.name, editedOption(field, field.fallback)])),
  }) as unknown as Draft

const optionOf = new Map(fields.map((field) => [field.name as string, field]))

/** A field as the API takes it. */
function apiValue(field: DraftField, draft: Draft): unknown {
  const option = optionOf.get(field)
  if (option) return optionValue(option, draft[option.name])
  if (field === 'name') return draft.name.trim()
  if (field === 'sourceIds') return draft.sourceIds
  return draft.urls
    .map((url) => url.trim())
    .filter(Boolean)
    .map((url) => ({ url }))
}

export const draftFields: readonly DraftField[] = [
  'name',
  'sourceIds',
  'urls',
  ...fields.map(({ name }) => name),
]

const ownLabels: Readonly<Record<string, string>> = { name: 'Name', sourceIds: 'Sources', urls: 'URLs' }
export const labelOf = (field: DraftField): string => optionOf.get(field)?.label ?? ownLabels[field]!

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

/** The fields that two drafts do not share. */
export const changedFields = (before: Draft, after: Draft): DraftField[] =>
  draftFields.filter((field) => !same(apiValue(field, before), apiValue(field, after)))

/** The body of a PATCH that changes nothing else. */
export const bodyOf = (draft: Draft, fields: readonly DraftField[]): Record<string, unknown> =>
  Object.fromEntries(fields.map((field) => [field, apiValue(field, draft)]))

/** The changes of somebody, on top of a newer version. */
export const rebased = (newest: Draft, edited: Draft, fields: readonly DraftField[]): Draft => ({
  ...newest,
  ...Object.fromEntries(fields.map((field) => [field, edited[field]])),
})

/** A field for people. */
export function shownText(field: DraftField, draft: Draft): string {
  const value = apiValue(field, draft)
  const option = optionOf.get(field)
  if (value === null && option) return emptyMeans(option)
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  if (field === 'urls') return draft.urls.filter(Boolean).join('\n')
  if (Array.isArray(value)) return value.join('\n')
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.entries(value)
    .map(([key, text]) => `${key}: ${text}`)
    .join('\n')
}
