import { gzipSync } from 'node:zlib'

/** Fewer have little in common, and more would hold up all else: up to 20 ms for a MB. In bytes. */
const worthIt = { least: 2 * 1_024, most: 512 * 1_024 }

/** The records of a batch with gzip, which every reader of Kafka knows; null where they stay as they are. */
export function pack(records: Buffer): Buffer | null {
  if (records.length < worthIt.least || records.length > worthIt.most) return null
  const packed = gzipSync(records, { level: 1 })
  return packed.length < records.length ? packed : null
}
