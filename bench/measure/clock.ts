/**
 * Milliseconds on the machine's monotonic clock (CLOCK_MONOTONIC on Linux): the same in every process, never set, and
 * what CPU profiles count by.
 */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6
