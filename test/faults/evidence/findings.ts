const examplesKept = 20
const dossiersKept = 3

/** What must not be, by kind: all counted, the first few told. */
export class Findings {
  readonly #byKind = new Map<string, { count: number; examples: string[] }>()

  /** `dossier` is asked for the first few only. */
  add(kind: string, example: string, dossier: () => string[] = () => []): void {
    const found = this.#byKind.get(kind) ?? { count: 0, examples: [] }
    found.count++
    if (found.examples.length < examplesKept) {
      const details = found.examples.length < dossiersKept ? dossier() : []
      found.examples.push([example, ...details].join('\n'))
    }
    this.#byKind.set(kind, found)
  }

  get isEmpty(): boolean {
    return this.#byKind.size === 0
  }

  toJSON(): Record<string, { count: number; examples: string[] }> {
    return Object.fromEntries(this.#byKind)
  }
}
