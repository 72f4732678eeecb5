// The options of sources and destinations as forms hold them, and back to what the API takes. Pure.
import type { OptionField, OptionFields } from '../../operators/option-fields.ts'

/** As JSON. The bundle has it from src/operators/option-fields.ts. */
declare const OPTION_FIELDS: string
export const optionFields = JSON.parse(OPTION_FIELDS) as OptionFields

/** An option as it is edited: one of several texts is chosen by name, a list has a line for each, what is empty is null. */
export type EditedOption = string | boolean | readonly string[] | EditedMap
/** A text for each key; one that is empty is not there. */
export type EditedMap = Readonly<Record<string, string>>

export const isMap = (edited: EditedOption): edited is EditedMap =>
  typeof edited === 'object' && !Array.isArray(edited)

/** A delete always reaches a destination: there is nothing to choose. */
export const choicesOf = ({ choices }: OptionField): readonly string[] =>
  (choices ?? []).filter((choice) => choice !== 'delete')

export function editedOption(field: OptionField, value: unknown): EditedOption {
  if (field.type === 'boolean') return value === true
  if (field.type === 'list') {
    if (field.choices) return (value as string[] | null) ?? choicesOf(field)
    return ((value as string[] | null) ?? []).join('\n')
  }
  if (field.type === 'map') return (value as EditedMap | null) ?? {}
  return value === null ? '' : String(value)
}

export function optionValue(field: OptionField, edited: EditedOption): unknown {
  if (typeof edited === 'boolean') return edited
  if (isMap(edited)) {
    const filled = Object.entries(edited).filter(([, text]) => text.trim() !== '')
    return filled.length === 0 ? null : Object.fromEntries(filled)
  }
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

/** What an empty one stands for, in the words of its text. */
export const emptyMeans = ({ text }: Pick<OptionField, 'text'>): string =>
  /null for ([^.;]+)/.exec(text.replaceAll('`', ''))?.[1] ?? 'none'

export const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
