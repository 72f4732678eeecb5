import { eachMember, keyOf } from './json-members.ts'

/**
 * The text of a JSON object with other values for its members of this name, should there be several: `edit` gets the text of
 * each value, and gives the new one, or null to leave the member out. All other members keep their spelling. The same text
 * where there is no such member. Objects within are not looked into.
 */
export function withEditedMembers(
  text: string,
  name: string,
  edit: (value: string) => string | null,
): string {
  const members: string[] = []
  let isFound = false
  eachMember(text, 0, (keyStart, keyEnd, start, end) => {
    if (keyOf(text, keyStart, keyEnd) !== name) {
      members.push(text.slice(keyStart, end))
      return
    }
    isFound = true
    const value = edit(text.slice(start, end))
    if (value !== null) members.push(`${text.slice(keyStart, start)}${value}`)
  })
  return isFound ? `{${members.join(',')}}` : text
}
