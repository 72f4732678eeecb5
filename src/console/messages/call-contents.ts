import { usersOf } from '../../core/call/analytics-call.ts'
import { PostriderError } from '../../errors.ts'
import { callText } from './call-text.ts'
import type { FactsOptions, MessagePorts } from './message-facts.ts'

/** Where a copy lies in the topic of the calls. */
export interface CopyPlace {
  partition: number
  offset: number
}

export interface CallContents extends CopyPlace {
  /** The whole call as JSON; its maps are the text that was sent. */
  text: string
}

/**
 * What a call says: of the copy at that place, or of the newest. Throws `not_found` where it is gone or a deletion request
 * covers it, and what the ports reject with.
 */
export async function contentsOf(
  messageId: string,
  at: CopyPlace | null,
  ports: Pick<MessagePorts, 'facts' | 'erasures'>,
  options: FactsOptions = {},
): Promise<CallContents> {
  const { calls } = await ports.facts(messageId, options)
  // After the facts: users erased before they were read are known then.
  const erasures = await ports.erasures(options.signal)
  const found = calls
    .filter(({ place }) => at === null || (place.partition === at.partition && place.offset === at.offset))
    .sort((a, b) => b.appendedAt - a.appendedAt)[0]
  const gone = (why: string) =>
    new PostriderError('not_found', `messageId ${JSON.stringify(messageId)}: ${why}`)
  if (!found) throw gone('no such copy of the call lies in Kafka')
  const { call, appendedAt, place } = found
  const { sourceId, type } = call
  if (erasures.covers({ sourceId: sourceId || null, type, userIds: usersOf(call), appendedAt }))
    throw gone('a deletion request covers the call')
  return { partition: place.partition, offset: place.offset, text: callText(call) }
}
