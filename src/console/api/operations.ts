import { computationOperations } from './computations.ts'
import { deadLetterOperations } from './dead-letters.ts'
import { destinationOperations } from './destinations.ts'
import { deletionOperations } from './deletions.ts'
import { messageOperations } from './messages.ts'
import type { Operation } from './operation.ts'
import { secretOperations } from './secrets.ts'
import { sourceOperations } from './sources.ts'

/** Everything that the admin API can do, in the order of its document. */
export const operations: readonly Operation[] = [
  ...sourceOperations,
  ...destinationOperations,
  ...computationOperations,
  ...deletionOperations,
  ...deadLetterOperations,
  ...messageOperations,
  ...secretOperations,
]
