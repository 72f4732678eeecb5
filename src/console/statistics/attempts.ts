import { outcomeKinds } from '../../core/delivery/outcome.ts'
import type { ListedAttempt } from './statistics-store.ts'

/** How an attempt can have ended: `deferred` is none. */
export const attemptOutcomes = outcomeKinds.filter((kind) => kind !== 'deferred')

export function attemptView({ at, partition: _p, offset: _o, ...attempt }: ListedAttempt) {
  return { at: new Date(at).toISOString(), ...attempt }
}
