import { createRequire } from 'node:module'
import { discardPartialResponse } from './discard-partial-response.ts'
import { endFetchersWhenStopped } from './end-fetchers-when-stopped.ts'
import { forgetClosedSocket } from './forget-closed-socket.ts'
import { freeResponsesEarly } from './free-responses-early.ts'
import { heartbeatAfterClockChange } from './heartbeat-after-clock-change.ts'
import { keepBrokerIds } from './keep-broker-ids.ts'
import { ownCommittedOffsets } from './own-committed-offsets.ts'
import { checkPatches, type LoadKafkajs, type Patch } from './patch.ts'
import { rejoinWhenForgotten } from './rejoin-when-forgotten.ts'
import { stopIdleSpin } from './stop-idle-spin.ts'
import { waitBeforeJoin } from './wait-before-join.ts'

/** In the order in which they are installed: connections, then the group's membership. */
export const patches: readonly Patch[] = [
  stopIdleSpin,
  freeResponsesEarly,
  discardPartialResponse,
  forgetClosedSocket,
  keepBrokerIds,
  waitBeforeJoin,
  heartbeatAfterClockChange,
  rejoinWhenForgotten,
  ownCommittedOffsets,
  endFetchersWhenStopped,
]

const require = createRequire(import.meta.url)
const loadInstalled: LoadKafkajs = (file) => require(`kafkajs/${file}`)

let isInstalled = false

/**
 * Patches the kafkajs of this process, for all that use it: so only processes that are Postrider's own may call it, not
 * `postrider/kafka`, which runs in an application. Checks first that every patch fits, and changes nothing where one
 * does not. Idempotent.
 * @param load for tests
 * @throws PostriderError `setup` where the installed kafkajs is not the one that the patches are written for
 */
export function installPatches(load: LoadKafkajs = loadInstalled): void {
  if (isInstalled) return
  checkPatches(patches, load)
  for (const patch of patches) patch.install(load)
  isInstalled = true
}
