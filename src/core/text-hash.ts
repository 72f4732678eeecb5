/** Of FNV-1a, 32 bits. */
export const fnvPrime = 0x01000193

/** FNV-1a of the UTF-16 code units, going on from `hash`. `spread` makes all of its bits count. */
export function hashOn(hash: number, text: string): number {
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), fnvPrime)
  return hash
}

/** Mixes the upper bits into the lower ones, by which a table finds its places. */
export function spread(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d)
  return hash ^ (hash >>> 15)
}
