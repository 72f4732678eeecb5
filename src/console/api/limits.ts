import type { RequestLimit } from './operation.ts'

/** Reads of a whole topic. Each takes a connection, memory and time of a process that may be a collector, too. */
export const longReads: RequestLimit = {
  max: 4,
  busy: '4 requests that read a whole topic are running on this console, which is all that there may be; try again when one has ended',
}
