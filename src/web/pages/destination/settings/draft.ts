// What the settings form holds: a destination as texts, and back to what the API takes. Pure.
import type { OptionField } from '../../../../operators/destinations/option-fields.ts'
import type { DestinationAnswer } from '../../../api/routes.ts'

/** As JSON. The bundle has it from src/operators/destinations/option-fields.ts. */
declare const OPTION_FIELDS: string
export const optionFields = JSON.parse(OPTION_FIELDS) as readonly OptionField[]

/** A delete always reaches a destination: there is nothing to choose. */
export const choicesOf = ({ choices }: OptionField): readonly string[] =>
  (choices ?? []).filter((choice) => choice !== 'delete')

/** An option as it is edited: one of several texts is chosen by name, a list has a line for each, what is empty is null. */
type Edited = string | boolean | readonly string[]

export type Draft = {
  name: string
  sourceIds: string
  urls: readonly string[]
} & { [O in OptionField['name']]: Edited }

export type DraftField = keyof Draft

function editedOf(field: OptionField, value: unknown): Edited {
  if (field.type === 'boolean') return value === true
  if (field.type === 'list') {
    if (field.choices) return (value as string[] | null) ?? choicesOf(field)
    return ((value as string[] | null) ?? []).join('\n')
  }
  return value === null ? '' : String(value)
}

export const draftOf = (destination: DestinationAnswer): Draft =>
  ({
    name: destination.name,
    sourceIds: destination.sourceIds.join('\n'),
    urls: destination.urls.map(({ url }) => url),
    ...Object.fromEntries(
      optionFields.map((field) => [field.name, editedOf(field, destination[field.name])]),
    ),
  }) as unknown as Draft

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)

function valueOf(field: OptionField, edited: Edited): unknown {
  if (typeof edited === 'boolean') return edited
  if (typeof edited !== 'string') {
    const all = choicesOf(field)
    return edited.length === all.length ? null : all.filter((each) => edited.includes(each))
  }
  const text = edited.trim()
  if (text === '' && field.isNullable) return null
  if (field.type === 'list') return linesOf(text)
  // What is no number is left to the API to refuse.
  return field.type === 'number' ? Number(text) : text
}

const optionOf = new Map(optionFields.map((field) => [field.name as string, field]))

/** A field as the API takes it. */
function apiValue(field: DraftField, draft: Draft): unknown {
  const option = optionOf.get(field)
  if (option) return valueOf(option, draft[option.name])
  if (field === 'name') return draft.name.trim()
  if (field === 'sourceIds') return linesOf(draft.sourceIds)
  return draft.urls
    .map((url) => url.trim())
    .filter(Boolean)
    .map((url) => ({ url }))
}

export const draftFields: readonly DraftField[] = [
  'name',
  'sourceIds',
  'urls',
  ...optionFields.map(({ name }) => name),
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
  if (value === null) return optionOf.get(field)?.choices ? 'all' : 'none'
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  if (field === 'urls') return draft.urls.filter(Boolean).join('\n')
  return Array.isArray(value) ? value.join('\n') : String(value)
}
