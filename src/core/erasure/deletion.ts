import { absentFields, type AnalyticsCall } from '../call/analytics-call.ts'
import type { Erasure } from './erasures.ts'
import type { SettingsState } from '../settings/settings.ts'

/** Maximum number of users in one request to delete or suppress them. */
export const maxUsersOfRequest = 5_000

export interface DeletionRequest {
  requestId: string
  userIds: readonly string[]
  /** Epoch milliseconds. */
  at: number
  /** Who made it; null where that is not known. */
  actor: string | null
}

/** A source whose calls a request covers. */
export interface AffectedSource {
  sourceId: string
  /** Its enabled webhook destinations: they get a delete call for each user. */
  destinationIds: readonly string[]
}

/**
 * The sources that a request is about: all of them, disabled ones too, unless it names some. No destination is notified of users
 * of a disabled source, whose calls are not delivered either.
 */
export function affectedSources(
  sourceIds: readonly string[] | null,
  { sources, destinations }: SettingsState,
): { affected: AffectedSource[]; unknown: string[] } {
  const enabled = [...destinations.values()].filter((destination) => destination.enabled)
  const notifiedBy = (sourceId: string) =>
    enabled.filter(({ sourceIds: its }) => its.includes(sourceId)).map(({ id }) => id)
  const chosen = [...new Set(sourceIds ?? sources.keys())]
  return {
    affected: chosen
      .filter((sourceId) => sources.has(sourceId))
      .map((sourceId) => ({
        sourceId,
        destinationIds: sources.get(sourceId)!.enabled ? notifiedBy(sourceId) : [],
      })),
    unknown: chosen.filter((sourceId) => !sources.has(sourceId)),
  }
}

/** What a request first writes: a mark for each user and source, in one fixed order. */
export function* erasuresOf(
  { requestId, userIds, at, actor }: DeletionRequest,
  sources: readonly AffectedSource[],
): Generator<Erasure, void, undefined> {
  const total = userIds.length * sources.length
  let number = 0
  for (const userId of userIds)
    for (const { sourceId, destinationIds } of sources)
      yield {
        ...{ sourceId, userId, requestId, at, number: ++number, total, destinationIds },
        ...{ finished: false, actor },
      }
}

/**
 * What it writes last: the delete calls of its first `notified` erasures are all written. They are counted, so that a process that
 * finishes a request that seemed to be cut off may do so while that is still being written.
 */
export function finishedNote(
  { requestId, at }: Pick<DeletionRequest, 'requestId' | 'at'>,
  total: number,
  notified: number,
): Erasure {
  const number = notified + 1
  return {
    ...{ sourceId: '', userId: '', requestId, at, number, total, destinationIds: [] },
    ...{ finished: true, actor: null },
  }
}

/** The messageIds of one request's delete calls begin with this. */
export const deleteIdPrefix = (requestId: string): string => `delete-${requestId}-`

/** Whether a call's messageId is that of a delete call. A sender may choose such a one, too. */
export const isDeleteId = (messageId: string): boolean => messageId.startsWith('delete-')

/**
 * The call by which the source's destinations learn that the user is to be forgotten (the spec, Events 1). The same
 * erasure always gives the same call. `hash` is of source and user.
 */
export function deleteCall({ sourceId, userId, requestId, at }: Erasure, hash: string): AnalyticsCall {
  const messageId = deleteIdPrefix(requestId) + hash
  return { ...absentFields, messageId, sourceId, type: 'delete', userId, timestamp: at, receivedAt: at }
}
