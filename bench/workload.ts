import type { Servers } from './rig.ts'

export interface Row {
  what: string
  unit: string
  value: number
  /** Share of one core. */
  cpu?: number
}

export interface Result {
  rows: Row[]
  /** The figure over its reference. */
  ratio: number | null
  goal: number | null
  /** Why no verdict is given; null when there is one. */
  verdict: string | null
  /** Everything measured, for the JSON. */
  detail: object
}

export interface Workload {
  name: string
  summary: string
  run(servers: Servers, sizes: { calls?: number; rounds?: number }): Promise<Result>
}
