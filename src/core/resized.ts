/**
 * A copy of another length, longer or shorter. Not by ArrayBuffer's `transfer`: once a process has detached a buffer,
 * V8 checks at each access of any typed array whether that one is.
 */
export function resized<T extends Uint8Array | Int32Array | Uint32Array | Float64Array>(
  array: T,
  length: number,
): T {
  const copy = new (array.constructor as new (length: number) => T)(length)
  copy.set(array.subarray(0, length))
  return copy
}
