/** Held by one process at a time for one audience or trait. */
export interface Lease {
  /** Throws when it was lost. */
  check(): void
  release(): Promise<void>
}
