// Bytes in memory of their own, for what is kept for longer than a moment. Node takes small buffers out of common blocks
// of 64 KB, and one of them that is kept keeps its whole block. While every tenth call waited for its tier, the bodies of
// all the others stayed with it until V8 collected its whole heap, 12 MB a second: it did so every 2.3 s, and every 4.5 s
// since what waits has memory of its own.

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
