import type { ExpressionFault } from './call-values.ts'
import { isFault } from './evaluation.ts'

/** Go through a list; one within the condition of another would take the square of its length. */
export const searches = ['all', 'exists', 'exists_one', 'filter'] as const
export type Search = (typeof searches)[number]

export const isSearch = (name: string): name is Search => (searches as readonly string[]).includes(name)

type Verdict = (items: readonly unknown[], holdsFor: (item: unknown) => boolean | ExpressionFault) => unknown

/** One element that decides is enough, whatever is wrong with the others. */
const decidedBy =
  (decides: boolean): Verdict =>
  (items, holdsFor) => {
    let fault: ExpressionFault | null = null
    for (const item of items) {
      const holds = holdsFor(item)
      if (holds === decides) return decides
      if (typeof holds !== 'boolean') fault ??= holds
    }
    return fault ?? !decides
  }

const filter = (items: readonly unknown[], holdsFor: (item: unknown) => boolean | ExpressionFault) => {
  const some: unknown[] = []
  for (const item of items) {
    const holds = holdsFor(item)
    if (typeof holds !== 'boolean') return holds
    if (holds) some.push(item)
  }
  return some
}

export const verdicts: Record<Search, Verdict> = {
  all: decidedBy(false),
  exists: decidedBy(true),
  exists_one: (items, holdsFor) => {
    const some = filter(items, holdsFor)
    return isFault(some) ? some : some.length === 1
  },
  filter,
}
