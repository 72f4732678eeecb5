const units: Record<string, number> = { B: 1, KB: 1_024, MB: 1_024 * 1_024 }

/** Parses `500B 500KB 2MB` into bytes, KB being 1,024; null when the text is not of that form. */
export function parseByteSize(text: string): number | null {
  const match = /^(\d{1,9})(B|KB|MB)$/.exec(text.trim())
  return match ? Number(match[1]) * units[match[2]!]! : null
}
