/** A host whose name leads to one of these, by turns. */
export const movingHost = 'moving.test'
export const movingAddresses = ['127.0.0.2', '127.0.0.3'] as const

/** How long after a move requests may come to the address of before, in ms, times the run's patience. */
export const followMs = 60_000
