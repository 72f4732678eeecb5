/**
 * 64 bits of hash of a user at a source, in two halves, for sets of millions of users: two users are taken for one
 * with a chance of one in 10^12 even among ten million. Two lanes over the UTF-16 units of both ids, each mixed as in
 * MurmurHash3, then into one another.
 */
export class UserHash {
  readonly #seed: number
  high = 0
  low = 0

  /** @param seed a random 32-bit number, so that a sender cannot choose ids that share a slot */
  constructor(seed: number) {
    this.#seed = seed | 0
  }

  /** Sets `high` and `low`. */
  of(sourceId: string, userId: string): void {
    let a = this.#seed
    let b = ~this.#seed
    for (let at = 0; at <= sourceId.length + userId.length; at++) {
      const unit =
        at < sourceId.length
          ? sourceId.charCodeAt(at)
          : at === sourceId.length
            ? between
            : userId.charCodeAt(at - sourceId.length - 1)
      a = Math.imul(rotated(a ^ rotated(Math.imul(unit, 0xcc9e2d51), 15), 13), 0x1b873593) + 0x561ccd1b
      b = Math.imul(rotated(b ^ rotated(Math.imul(unit, 0x239b961b), 16), 17), 0x38b34ae5) + 0x0bcaa747
    }
    a = spread(a + b)
    b = spread(b + Math.imul(a, 0x9e3779b1))
    this.high = a >>> 0
    this.low = b >>> 0
  }
}

/** No UTF-16 unit: nothing that the ids hold moves from one to the other. */
const between = 0x10000

const rotated = (word: number, bits: number): number => (word << bits) | (word >>> (32 - bits))

function spread(word: number): number {
  word = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
  word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35)
  return word ^ (word >>> 16)
}
