import { isObject, parseJson, rawJSON } from '../json/parse-json.ts'
import { markedInField } from './secret-holes.ts'
import { Unrenderable } from './text-template.ts'

/**
 * A JSON object as a form (application/x-www-form-urlencoded, as the WHATWG's URL standard writes it): a field a key;
 * objects and lists as their JSON, null as nothing.
 *
 * @param hasSecrets marks of secrets stand in it
 */
export function formOf(json: string, hasSecrets = false): string {
  try {
    const value = parseJson(json, rawJSON)
    if (!isObject(value)) throw new Unrenderable('a form is made of an object, and the body is none')
    const fields = Object.entries(value).map(([key, member]): [string, string] => [
      key,
      fieldText(member, hasSecrets),
    ])
    return new URLSearchParams(fields).toString()
  } catch (error) {
    // The stack is used up.
    throw error instanceof RangeError ? new Unrenderable('a value is nested too deep for a form') : error
  }
}

function fieldText(value: unknown, hasSecrets: boolean): string {
  if (typeof value === 'string') return value
  if (value === null) return ''
  const json = JSON.stringify(value)
  return hasSecrets ? markedInField(json) : json
}
