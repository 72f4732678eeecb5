// What one collector took and refused of one source in a stretch of time: `schemas/delivery-event.avsc`, CollectedCalls.
import type { ReasonCount } from './tally.ts'

/** Calls of one type, by what became of them. */
export interface CollectedType {
  /** `unknown` where it was not read. */
  type: string
  accepted: number
  duplicate: number
  refused: number
}

/** Counts of one source since the last summary. */
export interface CollectedCounts {
  types: CollectedType[]
  /** By the code of the answer; adds up to what is `refused`. */
  refusals: ReasonCount[]
}

export interface CollectedCalls extends CollectedCounts {
  /** The process, from its start to its end. */
  instance: string
  /** Of the summaries of the process, from 1. */
  sequence: number
  /** Epoch milliseconds. */
  from: number
  to: number
}
