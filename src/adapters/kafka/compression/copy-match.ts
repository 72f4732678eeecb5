/** Shorter ones are copied sooner byte by byte than by a call. */
const fewBytes = 24

/**
 * Appends to `target` at `at` what stands `distance` bytes before, which may reach into what it appends (LZ4, Snappy).
 * Both lie within `target`.
 */
export function copyMatch(target: Buffer, at: number, distance: number, length: number): void {
  const end = at + length
  if (length <= fewBytes) {
    for (let from = at - distance; at < end;) target[at++] = target[from++]!
    return
  }
  const from = at - distance
  // What was copied is there to be copied: twice as much each time.
  for (let has = distance; at < end; has *= 2) {
    const size = Math.min(has, end - at)
    target.copyWithin(at, from, from + size)
    at += size
  }
}

export function copyLiterals(source: Buffer, from: number, target: Buffer, at: number, length: number): void {
  if (length > fewBytes) source.copy(target, at, from, from + length)
  else for (const end = from + length; from < end;) target[at++] = source[from++]!
}
