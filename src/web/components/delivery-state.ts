// What can become of a delivery, in words and colours.
import type { MessageAnswer } from '../api/routes.ts'
import type { Tone } from './text.tsx'

type State = MessageAnswer['copies'][number]['deliveries'][number]['state']

export const stateTones: Record<State, Tone> = {
  open: 'plain',
  waiting: 'warn',
  delivered: 'good',
  dead_letter: 'bad',
  skipped: 'plain',
  erased: 'plain',
  held: 'warn',
  unknown: 'plain',
}

/** In the order in which they are offered. */
export const deliveryStates: readonly State[] = [
  'delivered',
  'dead_letter',
  'waiting',
  'open',
  'held',
  'skipped',
  'unknown',
]

export const stateNames: Record<State, string> = {
  open: 'not finished',
  waiting: 'waits for a retry',
  delivered: 'delivered',
  dead_letter: 'dead letter',
  skipped: 'skipped',
  erased: 'erased',
  held: 'held',
  unknown: 'not known',
}
