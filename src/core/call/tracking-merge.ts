import { eachMember, keyOf } from '../json/json-members.ts'

/** An object as text, taken apart once to be merged under many others. */
export interface SharedMap {
  text: string
  members: { key: string; text: string }[]
}

/** `text` is one well-formed JSON object. */
export function sharedMap(text: string): SharedMap {
  const members = new Map<string, string>()
  eachMember(text, 0, (keyStart, keyEnd, start, end) => {
    const key = keyOf(text, keyStart, keyEnd)
    members.set(key, `${JSON.stringify(key)}:${text.slice(start, end)}`)
  })
  return { text, members: [...members].map(([key, member]) => ({ key, text: member })) }
}

/** The map with the shared members that it does not have itself. Values are not merged into each other. */
export function mergedUnder(own: string | null, shared: SharedMap | null): string | null {
  if (shared === null || shared.members.length === 0) return own
  if (own === null) return shared.text
  const keys = new Set<string>()
  eachMember(own, 0, (start, end) => keys.add(keyOf(own, start, end)))
  if (keys.size === 0) return shared.text
  const missing = shared.members.filter(({ key }) => !keys.has(key))
  if (missing.length === 0) return own
  return `${own.slice(0, own.lastIndexOf('}'))},${missing.map(({ text }) => text).join()}}`
}
