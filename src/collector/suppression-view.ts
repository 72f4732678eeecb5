import type { SuppressibleCall } from '../core/suppression/suppressions.ts'

/** The suppressed users, live. */
export interface SuppressionView {
  /** No user is suppressed. */
  readonly isEmpty: boolean
  covers(call: SuppressibleCall): boolean
}
