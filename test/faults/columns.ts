/** Rows of numbers, millions of them: a row is a few typed arrays' entries at one index. */
export class Columns<Name extends string> {
  readonly #names: readonly Name[]
  readonly #data: Record<Name, Float64Array>
  length = 0

  constructor(names: readonly Name[]) {
    this.#names = names
    this.#data = Object.fromEntries(names.map((name) => [name, new Float64Array(1_024)])) as Record<
      Name,
      Float64Array
    >
  }

  push(row: Record<Name, number>): void {
    const index = this.length++
    for (const name of this.#names) {
      let column = this.#data[name]
      if (index >= column.length) {
        const larger = new Float64Array(column.length * 2)
        larger.set(column)
        column = this.#data[name] = larger
      }
      column[index] = row[name]
    }
  }

  get(name: Name, index: number): number {
    return this.#data[name][index]!
  }

  /** Which rows have which value in a column of whole numbers from 0 to `groups - 1`; in each, as they were pushed. */
  groupBy(name: Name, groups: number): Groups {
    const column = this.#data[name]
    const starts = new Int32Array(groups + 1)
    for (let index = 0; index < this.length; index++) starts[column[index]! + 1]!++
    for (let group = 0; group < groups; group++) starts[group + 1]! += starts[group]!
    const rows = new Int32Array(this.length)
    const next = starts.slice()
    for (let index = 0; index < this.length; index++) rows[next[column[index]!]!++] = index
    return { of: (group) => rows.subarray(starts[group]!, starts[group + 1]!) }
  }
}

export interface Groups {
  of(group: number): Int32Array
}
