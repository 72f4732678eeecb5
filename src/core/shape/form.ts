import { isObject, parseJson, rawJSON } from '../json/parse-json.ts'
import { Unrenderable } from './text-template.ts'

/**
 * A JSON object as a form (application/x-www-form-urlencoded, as the WHATWG's URL standard writes it): a field a key;
 * objects and lists as their JSON, null as nothing.
 */
export function formOf(json: string): string {
  try {
    const value = parseJson(json, rawJSON)
    if (!isObject(value)) throw new Unrenderable('a form is made of an object, and the body is none')
    const fields = Object.entries(value).map(([key, member]): [string, string] => [key, fieldText(member)])
    return new URLSearchParams(fields).toString()
  } catch (error) {
    // The stack is used up.
    throw error instanceof RangeError ? new Unrenderable('a value is nested too deep for a form') : error
  }
}

function fieldText(value: unknown): string {
  if (typeof value === 'string') return value
  return value === null ? '' : JSON.stringify(value)
}
