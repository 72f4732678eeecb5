// Bytes in memory of their own, for what is kept for longer than a moment. Node takes small buffers out of common blocks
// of 64 KB, and one of them that is kept keeps its whole block: what waits for a tier would keep the bodies of all the
// calls between, until V8 collects its whole heap, and V8 would do that as often as they have grown by 64 MB.
//
// An array buffer for each has its price too. What is many and goes together lies in blocks that hold nothing else
// (RecordEncoder).

export function ownCopy(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}

export function ownBytes(text: string, encoding: 'latin1' | 'utf8'): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text, encoding))
  bytes.write(text, encoding)
  return bytes
}
