import { setTimeout as delay } from 'node:timers/promises'
import type { Seat } from '../fleet.ts'
import type { Random } from '../random.ts'
import type { Receivers } from '../load/receivers.ts'
import type { Rig } from '../rig.ts'

/** What a fault may use, and whom it tells of what must not be. */
export interface FaultContext {
  rig: Rig
  /** All forwarders; the ones that are not `busy` are to be had. */
  seats: readonly Seat[]
  /** Those that a fault may end: one that is watched for its memory lives through the whole run. */
  mortals: readonly Seat[]
  collector: Seat
  console: Seat
  /** All processes that need Kafka. */
  parts: readonly Seat[]
  receivers: Receivers
  random: Random
  /** Factor by which timeouts are stretched. */
  patience: number
  /** How often around brokers are rolled. */
  rounds: number
  /** What the fault does or waits for now. */
  step(text: string): void
  /** Something that no fault may lead to. */
  finding(text: string): void
  /** True while something that all forwarders need is broken, or was within `sinceMs` (performance.now). */
  infrastructureFailed(sinceMs: number): boolean
}

/** What was done, in words; or why it could not be. */
export type Injection = string | { notInjected: string }

/** Faults of one lock come one after another; those of different ones may come together. */
export type Lock = 'infrastructure' | 'forwarders' | 'registry' | 'collector' | 'receivers' | 'ways'

export interface Fault {
  lock: Lock
  /** Resolves when it is over and what was broken works again. */
  inject(context: FaultContext): Promise<Injection>
}

/** How long a forwarder may take until it works again. */
const readyMs = 90_000

/** Takes a seat for one fault, and gives it back. */
export async function withSeat<T>(
  { random }: FaultContext,
  among: readonly Seat[],
  use: (seat: Seat) => Promise<T>,
): Promise<T | { notInjected: string }> {
  const free = among.filter((seat) => !seat.busy)
  if (free.length === 0) return { notInjected: 'each that could have it has another fault' }
  const seat = random.pick(free)
  seat.busy = true
  try {
    return await use(seat)
  } finally {
    seat.busy = false
  }
}

/** Waits until the forwarders work again; says so when they do not, although what they need is there. */
export async function recovered(
  context: FaultContext,
  seats: readonly Seat[],
  after: string,
  lock: Lock,
): Promise<void> {
  const notReady = new Set(seats.map(({ name }) => name))
  const tell = () => context.step(`waits for readiness of ${[...notReady].join(', ')}`)
  tell()
  await Promise.all(
    seats.map(async (seat) => {
      for (;;) {
        const began = performance.now()
        try {
          await seat.ready(readyMs * context.patience)
          notReady.delete(seat.name)
          return tell()
        } catch {
          if (seat.frozen || (lock !== 'infrastructure' && context.infrastructureFailed(began))) continue
          context.finding(
            `${seat.name} takes no work ${(readyMs * context.patience) / 1_000} s after ${after}: it says ${seat.said}`,
          )
          return
        }
      }
    }),
  )
}

export const seconds = (random: Random, min: number, max: number): number =>
  random.between(min * 1_000, max * 1_000)

export const pause = (ms: number): Promise<void> => delay(ms)

export const describeMs = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
