import { followMs } from '../load/moving-host.ts'
import type { FaultKind } from './fault-kinds.ts'
import { type Fault, type FaultContext, pause } from './fault.ts'

/** So long no request has come to the address of before, in ms: those that are well known have followed. */
const quietMs = 10_000

/**
 * A name leads to another address, and the one of before fails from then on. Whether all followed is judged at the end, by
 * what the receiver saw.
 */
async function moveName({ receivers, patience, step }: FaultContext): Promise<string> {
  const boundMs = followMs * patience
  // Else nobody could tell which move a request has missed.
  const before = receivers.moves.at(-1) ?? -Infinity
  step('waits for the end of the move before')
  await pause(Math.max(0, before + boundMs - Date.now()))
  const address = await receivers.move()
  const began = Date.now()
  step(`waits for requests to ${address}`)
  const hasFollowed = () => {
    const { taken, lastAtOld } = receivers.sinceMove()
    return taken > 0 && Date.now() - (lastAtOld ?? began) > quietMs
  }
  while (!hasFollowed() && Date.now() - began < boundMs) await pause(500)
  const { taken, lastAtOld } = receivers.sinceMove()
  const last = lastAtOld === null ? 'none' : `the last ${((lastAtOld - began) / 1_000).toFixed(1)} s later`
  return `a name moved to ${address}, which has taken ${taken} calls; at the address of before: ${last}`
}

export const receiverFaults = {
  'name-moved': { lock: 'receivers', inject: moveName },
} satisfies Partial<Record<FaultKind, Fault>>
