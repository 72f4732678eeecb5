// Prometheus' text format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats), written directly:
// prom-client's registry takes 22-50 ms of the event loop for 1,000 label sets of one histogram.

/**
 * Something with metric families to show. Yields text that ends with a line's end; the caller may
 * let other work go on between two pieces, so a piece should not take longer than about a millisecond.
 */
export interface Exposed {
  /** An empty piece only lets other work go on. */
  expose(): Iterable<string>
}

/** Stands for all that have no series of their own. */
export const other = 'other'
/** Destinations, or sources, that have series of their own unless the settings say otherwise. */
export const defaultOwnSeries = 1_000

export function heading(name: string, type: 'counter' | 'gauge' | 'histogram', help: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
}

/** `{a="1",b="2"}` with values escaped; nothing when there are none. */
export function labels(pairs: Readonly<Record<string, string>>): string {
  const list = Object.entries(pairs).map(([name, value]) => `${name}="${escapeValue(value)}"`)
  return list.length > 0 ? `{${list.join(',')}}` : ''
}

export function escapeValue(value: string): string {
  if (!/[\\"\n]/.test(value)) return value
  return value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')
}

/** One family's lines from a long row of sources, in pieces of at most `size` sources each. */
export function* inPieces<T>(
  head: string,
  sources: Iterable<T>,
  lines: (source: T) => string,
  size = 100,
): Generator<string> {
  let piece = head
  let count = 0
  for (const source of sources) {
    piece += lines(source)
    if (++count % size === 0) {
      yield piece
      piece = ''
    }
  }
  if (piece !== '') yield piece
}

/** Counts of one histogram series: plain numbers, cumulated only when they are shown. */
export class Histogram {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #sum = 0

  /** `bounds` are upper bounds, inclusive, ascending, without infinity. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Array<number>(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    const bounds = this.#bounds
    let at = 0
    while (at < bounds.length && value > bounds[at]!) at++
    this.#counts[at]!++
    this.#sum += value
  }

  /** The series' lines. `pairs` are its labels as `a="1"`, without braces; empty when it has none. */
  lines(name: string, pairs: string): string {
    const open = pairs === '' ? `${name}_bucket{le="` : `${name}_bucket{${pairs},le="`
    let text = ''
    let total = 0
    for (let at = 0; at < this.#bounds.length; at++) {
      total += this.#counts[at]!
      text += `${open}${this.#bounds[at]!}"} ${total}\n`
    }
    total += this.#counts[this.#bounds.length]!
    const braces = pairs === '' ? '' : `{${pairs}}`
    return `${text}${open}+Inf"} ${total}\n${name}_sum${braces} ${this.#sum}\n${name}_count${braces} ${total}\n`
  }
}
