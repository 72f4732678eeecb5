import { computationOperations } from './resources/computations.ts'
import { deadLetterOperations } from './resources/dead-letters.ts'
import { destinationOperations } from './resources/destinations.ts'
import { deletionOperations } from './resources/deletions.ts'
import { messageOperations } from './resources/messages.ts'
import type { Operation } from './operation.ts'
import { replayOperations } from './resources/replay.ts'
import { secretOperations } from './resources/secrets.ts'
import { sourceOperations } from './resources/sources.ts'

/** Everything that the admin API can do, in the order of its document. */
export const operations: readonly Operation[] = [
  ...sourceOperations,
  ...destinationOperations,
  ...computationOperations,
  ...deletionOperations,
  ...deadLetterOperations,
  ...replayOperations,
  ...messageOperations,
  ...secretOperations,
]
