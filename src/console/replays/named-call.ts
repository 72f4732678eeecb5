import { PostriderError } from '../../errors.ts'
import type { FactsOptions, MessagePorts } from '../messages/message-facts.ts'

/** Epoch ms, by the broker's clock; `until` is not included. */
export interface CallTimes {
  since: number
  until: number
}

/**
 * When a call came in: so that a replay of it need not read all that is kept. Of several copies it is the newest. Throws
 * `not_found`, and what the ports reject with.
 */
export async function timesOfCall(
  messageId: string,
  { facts }: Pick<MessagePorts, 'facts'>,
  options: FactsOptions = {},
): Promise<CallTimes> {
  const { calls } = await facts(messageId, options)
  if (calls.length === 0)
    throw new PostriderError(
      'not_found',
      `no call with messageId ${JSON.stringify(messageId)} lies in Kafka: it cannot be sent again`,
    )
  const since = Math.max(...calls.map(({ appendedAt }) => appendedAt))
  return { since, until: since + 1 }
}
