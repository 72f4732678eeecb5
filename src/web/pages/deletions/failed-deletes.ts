// The delete calls of a request that failed and are to be sent again.
import type { DeadLetterSummary, ListPage } from '../../api/routes.ts'

/** As many as one replay takes. */
const maxIds = 1_000

/** Whether its delivery is over, or on its way, since a replay sent it again. */
const isSent = ({ sentAgain = null }: DeadLetterSummary): boolean =>
  sentAgain !== null && sentAgain.state !== 'dead_letter' && sentAgain.state !== 'unknown'

/**
 * The ids of all that are dead letters still, each delivery once, in parts of which each is for one replay. `read` gives
 * a page of the dead letters, the newest first, that says what replays sent again.
 */
export async function failedDeletes(
  id: string,
  read: (cursor: string | null) => Promise<ListPage<DeadLetterSummary>>,
): Promise<string[][]> {
  const ids: string[] = []
  const seen = new Set<string>()
  let cursor: string | null = null
  do {
    const page: ListPage<DeadLetterSummary> = await read(cursor)
    for (const deadLetter of page.data) {
      const { deliveryId, messageId } = deadLetter
      if (deliveryId === null || !messageId?.startsWith(`delete-${id}-`)) continue
      // The newest one of a delivery decides: it may have been sent since an older one.
      if (seen.has(deliveryId)) continue
      seen.add(deliveryId)
      if (!isSent(deadLetter)) ids.push(deadLetter.id)
    }
    cursor = page.next
  } while (cursor !== null)
  return Array.from({ length: Math.ceil(ids.length / maxIds) }, (_, part) =>
    ids.slice(part * maxIds, (part + 1) * maxIds),
  )
}
