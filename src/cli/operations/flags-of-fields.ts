import { InvalidArgumentError, Option, type Command } from 'commander'
import { contentOf, namesOf, rateIn, repeatable, usageError } from '../flags.ts'
import type { Field } from '../../operators/fields.ts'

/** Fields whose flag has another name than theirs; with `!` before it, it means false. Null: the field has no flag. */
export type FlagNames = Readonly<Record<string, string | null>>

/** `maxRate` as `max-rate`. */
const kebab = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** A field's flag, with its dashes. */
export function flagOf({ name }: Pick<Field, 'name'>, names: FlagNames): string | null {
  const flag = names[name] === undefined ? kebab(name) : names[name]
  return flag && `--${flag.replace('!', '')}`
}

/** `isChange`: what is not given stays as it is, and what can be null can be taken away. */
export function addFlags(
  command: Command,
  fields: readonly Field[],
  names: FlagNames,
  isChange: boolean,
): void {
  for (const field of fields) {
    const flag = flagOf(field, names)
    if (flag === null) continue
    const option = optionOf(field, flag, names[field.name]?.startsWith('!') ?? false)
    command.addOption(field.isRequired ? option.makeOptionMandatory() : option)
    if (isChange && field.isNullable)
      command.addOption(new Option(flag.replace('--', '--no-'), withoutIt(field)))
  }
}

function optionOf(field: Field, flag: string, isNegative: boolean): Option {
  const { type, choices, isOfNames, fallback } = field
  const takes = `<${nounOf(field)}>`
  const text = isNegative ? `not ${field.name}` : textOf(field)
  switch (type) {
    case 'list':
      return repeatable(
        `${flag} ${takes}`,
        `${text}; repeatable${isOfNames ? ', or separated by commas' : ''}`,
      )
    case 'map':
      return repeatable(`${flag} <[key=]file>`, `${text}; repeatable`)
    case 'number':
      return new Option(`${flag} ${takes}`, text).argParser(field.name === 'rate' ? rateIn : numberIn)
    case 'boolean':
      if (isNegative || fallback !== undefined) return new Option(flag, text)
      return new Option(`${flag} <on|off>`, text).choices(['on', 'off'])
    case 'text':
      return choices
        ? new Option(`${flag} ${takes}`, text).choices(choices)
        : new Option(`${flag} ${takes}`, text)
  }
}

function numberIn(text: string): number {
  if (!/^\d{1,15}(\.\d{1,6})?$/.test(text)) throw new InvalidArgumentError('It takes a number.')
  return Number(text)
}

/** What a field's text says of null, which has a flag of its own. */
const nullText = /[;.]? ?null (?:for ([^.;]+)|takes it away)\.?/i

/** Without its full stop, as help has it. */
const textOf = ({ text, name, choices, type }: Field): string => {
  const said = text.replace(nullText, '').replace(/\.$/, '') || name
  if (choices && type === 'map')
    return `${said}: in a file, for ${choices.join(', ')} (default: ${choices[0]})`
  return choices && type === 'list' ? `${said}: ${choices.join(', ')}` : said
}

/** Of the flag that takes a field's value away. */
const withoutIt = ({ text }: Field): string => nullText.exec(text)?.[1] ?? 'none any more'

/** What stands behind a flag in help, where it is not the last word of its name. */
const nouns: Readonly<Record<string, string>> = {
  since: 'time',
  until: 'time',
  for: 'duration',
  window: 'duration',
  step: 'duration',
  user: 'id',
  destination: 'id',
  source: 'id',
  where: 'expression',
  drop: 'path',
  events: 'name',
  consent: 'category',
  event: 'name',
  proxy: 'url',
  retryWindow: 'duration',
  retryTiers: 'duration',
}

function nounOf({ type, name, choices }: Field): string {
  if (type === 'number') return 'number'
  if (/ids?$/i.test(name)) return 'id'
  // A step of time is a duration; one of what became of calls is a choice.
  return (choices ? undefined : nouns[name]) ?? kebab(name).split('-').at(-1)!.replace(/s$/, '')
}

/** The fields that were given, by what Commander read. Throws `usage` that names the flag. */
export function givenFields(
  options: Readonly<Record<string, unknown>>,
  fields: readonly Field[],
  names: FlagNames,
): Record<Field['place'], Record<string, unknown>> {
  const given: Record<Field['place'], Record<string, unknown>> = { query: {}, body: {} }
  for (const field of fields) {
    const flag = flagOf(field, names)
    if (flag === null) continue
    const value = options[camel(flag)]
    if (value === undefined) continue
    given[field.place][field.name] = valueOf(field, flag, value, names[field.name]?.startsWith('!') ?? false)
  }
  return given
}

function valueOf(field: Field, flag: string, value: unknown, isNegative: boolean): unknown {
  if (isNegative) return false
  // `--no-…`.
  if (value === false && field.isNullable) return null
  if (field.type === 'boolean') return value === true || value === 'on'
  if (field.type === 'map') return mapOf(field, flag, value as string[])
  if (field.isOfNames) return namesOf(flag, value as string[], field.choices ?? undefined)
  return value
}

/** `[KEY=]FILE` each; without a key it is the first one's. */
function mapOf({ choices }: Field, flag: string, given: readonly string[]): Record<string, string> {
  const pairs = given.map((text) => {
    const end = text.indexOf('=')
    const key = text.slice(0, Math.max(0, end))
    return choices!.includes(key) ? [key, text.slice(end + 1)] : [choices![0]!, text]
  }) as [string, string][]
  const keys = pairs.map(([key]) => key)
  const again = keys.find((key, index) => keys.indexOf(key) < index)
  if (again !== undefined) throw usageError(`${flag} is given twice for ${again}`)
  return Object.fromEntries(pairs.map(([key, file]) => [key, contentOf(file, flag)]))
}

const camel = (flag: string): string =>
  flag.slice(2).replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
