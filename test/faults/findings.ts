const examplesKept = 20

/** What must not be, by kind: all counted, the first few told. */
export class Findings {
  readonly #byKind = new Map<string, { count: number; examples: string[] }>()

  add(kind: string, example: string): void {
    const found = this.#byKind.get(kind) ?? { count: 0, examples: [] }
    found.count++
    if (found.examples.length < examplesKept) found.examples.push(example)
    this.#byKind.set(kind, found)
  }

  get isEmpty(): boolean {
    return this.#byKind.size === 0
  }

  toJSON(): Record<string, { count: number; examples: string[] }> {
    return Object.fromEntries(this.#byKind)
  }
}
