const seed = 0x9747b28c | 0
const mixer = 0x5bd1e995

/** As Apache Kafka's `Utils.murmur2`, signed, of the bytes from `at` to `end`. */
export function murmur2(data: Uint8Array, at = 0, end = data.length): number {
  let hash = seed ^ (end - at)
  for (; at + 4 <= end; at += 4) {
    let word = data[at]! | (data[at + 1]! << 8) | (data[at + 2]! << 16) | (data[at + 3]! << 24)
    word = Math.imul(word, mixer)
    word ^= word >>> 24
    hash = Math.imul(hash, mixer) ^ Math.imul(word, mixer)
  }
  const rest = end - at
  if (rest === 3) hash ^= data[at + 2]! << 16
  if (rest >= 2) hash ^= data[at + 1]! << 8
  if (rest >= 1) hash = Math.imul(hash ^ data[at]!, mixer)
  return finished(hash)
}

/** `murmur2` of the text's UTF-8. Keys are nearly always ASCII, which needs no buffer. */
export function murmur2OfText(text: string): number {
  const { length } = text
  let hash = seed ^ length
  let at = 0
  let codes = 0
  for (; at + 4 <= length; at += 4) {
    const a = text.charCodeAt(at)
    const b = text.charCodeAt(at + 1)
    const c = text.charCodeAt(at + 2)
    const d = text.charCodeAt(at + 3)
    codes |= a | b | c | d
    let word = a | (b << 8) | (c << 16) | (d << 24)
    word = Math.imul(word, mixer)
    word ^= word >>> 24
    hash = Math.imul(hash, mixer) ^ Math.imul(word, mixer)
  }
  for (let last = length - 1; last >= at; last--) {
    const code = text.charCodeAt(last)
    codes |= code
    hash ^= code << (8 * (last - at))
  }
  if (codes > 0x7f) return murmur2(Buffer.from(text))
  return finished(at < length ? Math.imul(hash, mixer) : hash)
}

/** The partition of a key with this `murmur2`, as Java's producers choose it: without its sign, modulo the partitions. */
export const partitionOfHash = (hash: number, partitions: number): number => (hash & 0x7fffffff) % partitions

export const partitionOfKey = (key: string, partitions: number): number =>
  partitionOfHash(murmur2OfText(key), partitions)

function finished(hash: number): number {
  hash ^= hash >>> 13
  hash = Math.imul(hash, mixer)
  return hash ^ (hash >>> 15)
}
