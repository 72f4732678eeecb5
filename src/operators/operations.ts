import { PostriderError } from '../errors.ts'
import { alertOperations } from './alerts/operations.ts'
import { catalogueOperations } from './catalogue/operations.ts'
import { computationOperations } from './audiences/operations.ts'
import { auditOperations } from './audit/operations.ts'
import { deadLetterOperations } from './dead-letters/operations.ts'
import { deletionOperations } from './deletions/operations.ts'
import { destinationOperations, pauseOperations } from './destinations/operations.ts'
import { infrastructureOperations } from './infrastructure/operations.ts'
import { tailOperations } from './live/operations.ts'
import { planOperations } from './plans/operations.ts'
import { problemOperations } from './problems/operations.ts'
import { replayJobOperations } from './replay/operations.ts'
import { secretOperations, settingsOperations } from './settings/operations.ts'
import { sourceOperations } from './sources/sources.ts'
import { attemptOperations, statsOperations } from './statistics/operations.ts'
import { overviewOperations, systemOperations } from './statistics/overview-operations.ts'
import { suppressionOperations } from './suppression/operations.ts'
import { sessionOperations } from './tokens/sessions.ts'
import { tokenOperations } from './tokens/tokens.ts'
import { messageOperations, userOperations } from './why/operations.ts'
import type { Operation } from './operation.ts'

/** Everything that the admin API can do, in the order of its document. */
export const operations: readonly Operation[] = [
  ...sourceOperations,
  ...tailOperations,
  ...catalogueOperations,
  ...planOperations,
  ...destinationOperations,
  ...pauseOperations,
  ...alertOperations,
  ...computationOperations,
  ...deletionOperations,
  ...suppressionOperations,
  ...deadLetterOperations,
  ...replayJobOperations,
  ...messageOperations,
  ...problemOperations,
  ...overviewOperations,
  ...statsOperations,
  ...attemptOperations,
  ...userOperations,
  ...systemOperations,
  ...infrastructureOperations,
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
