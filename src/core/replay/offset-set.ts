import type { OffsetRun } from '../offsets/offset-runs.ts'

/** Offsets of one chunk. Small, so that few scattered offsets cost little. */
const chunkOffsets = 4_096

/**
 * Many offsets of one partition, added in any order. A chunk takes a bit an offset, and nothing once all of it is in:
 * a week in which a destination was disabled costs as much as a minute.
 */
export class OffsetSet {
  readonly #chunks = new Map<number, { bits: Uint8Array; count: number } | 'full'>()
  #first = Infinity
  #end = 0

  /** The lowest offset in it; Infinity when it is empty. */
  get first(): number {
    return this.#first
  }

  /** One past the highest; 0 when it is empty. */
  get end(): number {
    return this.#end
  }

  add(runs: readonly OffsetRun[]): void {
    for (const { start, end } of runs) {
      if (start >= end) continue
      this.#first = Math.min(this.#first, start)
      this.#end = Math.max(this.#end, end)
      for (let at = start; at < end;) {
        const index = Math.floor(at / chunkOffsets)
        const stop = Math.min(end, (index + 1) * chunkOffsets)
        this.#fill(index, at - index * chunkOffsets, stop - index * chunkOffsets)
        at = stop
      }
    }
  }

  has(offset: number): boolean {
    const index = Math.floor(offset / chunkOffsets)
    const chunk = this.#chunks.get(index)
    if (chunk === undefined) return false
    if (chunk === 'full') return true
    const bit = offset - index * chunkOffsets
    return (chunk.bits[bit >> 3]! & (1 << (bit & 7))) !== 0
  }

  #fill(index: number, from: number, to: number): void {
    let chunk = this.#chunks.get(index)
    if (chunk === 'full') return
    if (chunk === undefined) {
      chunk = { bits: new Uint8Array(chunkOffsets / 8), count: 0 }
      this.#chunks.set(index, chunk)
    }
    for (let bit = from; bit < to; bit++) {
      const mask = 1 << (bit & 7)
      if ((chunk.bits[bit >> 3]! & mask) !== 0) continue
      chunk.bits[bit >> 3]! |= mask
      chunk.count++
    }
    if (chunk.count === chunkOffsets) this.#chunks.set(index, 'full')
  }
}
