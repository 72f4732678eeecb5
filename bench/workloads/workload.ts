import type { Servers } from '../rig.ts'

export interface Row {
  what: string
  unit: string
  value: number
  /** Share of one core. */
  cpu?: number
}

/** What a figure must be, and whether it is. */
export interface Goal {
  what: string
  value: number
  /** As people write it: `≥ 0.95`, `≤ 20 ms`. */
  goal: string
  met: boolean
}

export interface Result {
  rows: Row[]
  /** The figure over its reference. */
  ratio: number | null
  goal: number | null
  /** Where there is more to reach than one ratio. */
  goals?: Goal[]
  /** Why no verdict is given; null when there is one. */
  verdict: string | null
  /** Lines to print as they are: a plot, a table. */
  text?: string[]
  /** Everything measured, for the JSON. */
  detail: object
}

/** How much is run: what of it a workload has use for, it says in its own `sizes`. */
export interface Sizes {
  calls?: number
  rounds?: number
  /** How long is measured, where load comes at a rate. */
  seconds?: number
  /** How long is watched, where something must not grow. */
  minutes?: number
}

export interface Workload {
  name: string
  summary: string
  /** The default; shown by --help. */
  sizes?: Sizes
  /** By --quick: does it work at all? Figures are worth nothing. */
  quick?: Sizes
  run(servers: Servers, sizes: Sizes): Promise<Result>
}

export const atLeast = (what: string, value: number, min: number): Goal => ({
  what,
  value,
  goal: `≥ ${min}`,
  met: value >= min,
})

export const atMost = (what: string, value: number, max: number): Goal => ({
  what,
  value,
  goal: `≤ ${max}`,
  met: value <= max,
})
