import { PostriderError } from '../../errors.ts'
import { computationOperations } from '../../operators/audiences/operations.ts'
import { auditOperations } from '../../operators/audit/operations.ts'
import { deadLetterOperations } from '../../operators/dead-letters/operations.ts'
import { deletionOperations } from '../../operators/deletions/operations.ts'
import { destinationOperations, pauseOperations } from '../../operators/destinations/operations.ts'
import { tailOperations } from '../../operators/live/operations.ts'
import { replayJobOperations } from '../../operators/replay/operations.ts'
import { secretOperations, settingsOperations } from '../../operators/settings/operations.ts'
import { sourceOperations } from '../../operators/sources/sources.ts'
import { attemptOperations, statsOperations } from '../../operators/statistics/operations.ts'
import { overviewOperations, systemOperations } from '../../operators/statistics/overview-operations.ts'
import { suppressionOperations } from '../../operators/suppression/operations.ts'
import { sessionOperations } from '../../operators/tokens/sessions.ts'
import { tokenOperations } from '../../operators/tokens/tokens.ts'
import { messageOperations, userOperations } from '../../operators/why/operations.ts'
import type { Operation } from './operation.ts'

/** Everything that the admin API can do, in the order of its document. */
export const operations: readonly Operation[] = [
  ...sourceOperations,
  ...tailOperations,
  ...destinationOperations,
  ...pauseOperations,
  ...computationOperations,
  ...deletionOperations,
  ...suppressionOperations,
  ...deadLetterOperations,
  ...replayJobOperations,
  ...messageOperations,
  ...overviewOperations,
  ...statsOperations,
  ...attemptOperations,
  ...userOperations,
  ...systemOperations,
  ...auditOperations,
  ...secretOperations,
  ...settingsOperations,
  ...sessionOperations,
  ...tokenOperations,
]

const byId = new Map(operations.map((operation) => [operation.id, operation]))

/** Throws for an id that there is not: a bug. */
export function operationOf(id: string): Operation {
  const found = byId.get(id)
  if (found) return found
  throw new PostriderError('invariant', `there is no operation ${id}`)
}
