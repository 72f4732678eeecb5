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
