import { membersOf } from '../../components/text/json-text.ts'

/** A call of a tail. Its free-form maps are the text that was sent. */
export interface TailedCall {
  /** For this page only. */
  key: number
  /** The whole call, as the API sent it. */
  text: string
  messageId: string
  type: string
  receivedAt: string | null
  user: string | null
  /** What it is about, by its type: an event, a page, a group, the id before. */
  what: string | null
  /** Of `properties` or `traits`, what fits on a line. */
  preview: string
  fault: string | null
}

const previewLength = 200

/** @param text a JSON object, as the API's `call` */
export function tailedCall(text: string, key: number): TailedCall {
  const call = JSON.parse(text) as Record<string, string | undefined>
  const { messageId = '', type = 'unknown', receivedAt = null, userId, anonymousId, fault = null } = call
  const about = { group: call.groupId, alias: call.previousId }[type]
  const members = membersOf(text)
  const map = members.get('properties') ?? members.get('traits') ?? ''
  return {
    key,
    text,
    messageId,
    type,
    receivedAt,
    user: userId ?? anonymousId ?? null,
    what: call.event ?? call.name ?? about ?? null,
    preview: map === '{}' ? '' : map.slice(0, previewLength),
    fault,
  }
}

/** The text of a line's `call`; null of a line that has none. */
export function callTextOf(line: string): string | null {
  const [begin, end] = ['{"call":', '}']
  return line.startsWith(begin) ? line.slice(begin.length, line.lastIndexOf(end)) : null
}
