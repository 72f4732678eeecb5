/** Writes one line of the client's log. */
export type Debug = (line: string) => void

/**
 * The log for `DEBUG=analytics` (or `*`, or a list with it), on stderr; null without. It names calls by type,
 * messageId and size; neither their content nor the write key is ever in it.
 */
export function debugFrom(variable: string | undefined): Debug | null {
  const names = (variable ?? '').split(/[\s,]+/)
  if (!names.includes('analytics') && !names.includes('*')) return null
  return (line) => console.error(`${new Date().toISOString()} analytics ${line}`)
}
