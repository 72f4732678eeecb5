// Bytes in memory of their own, for what is kept for longer than a moment: a kept small buffer of Node's keeps a shared
// block of 64 KB (docs/performance.md). Bytes that are many and go together share blocks of their own (RecordEncoder).

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
