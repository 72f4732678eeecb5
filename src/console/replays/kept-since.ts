import type { ReplaySource } from './replay-source.ts'

/**
 * Where retention has taken the beginning of a range, from when on all of it is kept (epoch ms). Null: nothing is
 * missing.
 */
export async function keptSince(
  since: number,
  source: ReplaySource,
  topic: string,
  now: number,
  signal: AbortSignal,
): Promise<number | null> {
  // A log that begins at 0 has lost nothing.
  const cut = (await source.spans(topic)).filter(({ low }) => low > 0)
  const firsts = cut.map(({ partition, low, high }) => ({ partition, low, high: Math.min(high, low + 1) }))
  let kept = cut.some(({ low, high }) => low === high) ? now : -Infinity
  for await (const { timestamp } of source.read(topic, firsts, signal)) kept = Math.max(kept, timestamp)
  return kept > since ? kept : null
}
