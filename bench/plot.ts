const columns = 60
const rows = 8

/** A text plot of values over time: the highest value of what falls into a column, from zero up. */
export function plot(values: readonly number[], unit: string, end: string): string[] {
  if (values.length === 0) return []
  const wide = Math.min(columns, values.length)
  const heights = Array.from({ length: wide }, (_, column) => {
    const from = Math.floor((column * values.length) / wide)
    const to = Math.max(from + 1, Math.floor(((column + 1) * values.length) / wide))
    return Math.max(...values.slice(from, to))
  })
  const top = Math.max(...heights)
  const lines = Array.from({ length: rows }, (_, line) => {
    const level = (top * (rows - line)) / rows
    const below = (top * (rows - line - 1)) / rows
    const cells = heights.map((height) => (height >= level ? '█' : height > (level + below) / 2 ? '▄' : ' '))
    return `  ${Math.round(level).toString().padStart(6)} ${unit} │${cells.join('')}`
  })
  const gap = ' '.repeat(Math.max(1, wide - 1 - end.length))
  return [...lines, `  ${'0'.padStart(6)} ${unit} └${'─'.repeat(wide)}`, `  ${' '.repeat(9)}  0${gap}${end}`]
}
