import type { OffsetRun } from './offset-runs.ts'

/** What a commit holds as finished: every offset below the position, and the runs beyond it. */
export interface FinishedOffsets {
  position: number
  /** Ascending, apart from each other, none below the position. */
  runs: readonly OffsetRun[]
}

/** What of the first is not in the second. Both ascending and apart. */
export function subtractRuns(runs: readonly OffsetRun[], less: readonly OffsetRun[]): OffsetRun[] {
  const left: OffsetRun[] = []
  let next = 0
  for (const { start, end } of runs) {
    let at = start
    while (next < less.length && less[next]!.end <= at) next++
    for (let index = next; index < less.length && less[index]!.start < end; index++) {
      if (less[index]!.start > at) left.push({ start: at, end: less[index]!.start })
      at = Math.max(at, less[index]!.end)
    }
    if (at < end) left.push({ start: at, end })
  }
  return left
}

/** What lies in both. Both ascending and apart. */
export function intersectRuns(one: readonly OffsetRun[], other: readonly OffsetRun[]): OffsetRun[] {
  return subtractRuns(one, subtractRuns(one, other))
}

/** The runs of either, joined where they touch. Both ascending. */
export function uniteRuns(one: readonly OffsetRun[], other: readonly OffsetRun[]): OffsetRun[] {
  const joined: OffsetRun[] = []
  let last: OffsetRun | null = null
  for (let i = 0, j = 0; i < one.length || j < other.length;) {
    const first = j === other.length || (i < one.length && one[i]!.start <= other[j]!.start)
    const { start, end } = first ? one[i++]! : other[j++]!
    if (start >= end) continue
    if (last !== null && start <= last.end) last.end = Math.max(last.end, end)
    else joined.push((last = { start, end }))
  }
  return joined
}

/** What is below the position too, as a run. */
export const allRuns = ({ position, runs }: FinishedOffsets): OffsetRun[] =>
  uniteRuns([{ start: 0, end: position }], runs)

/** What of the first is not in the second. */
export function subtractFinished(finished: FinishedOffsets, less: FinishedOffsets): OffsetRun[] {
  return subtractRuns(allRuns(finished), allRuns(less))
}

/** Whether the first holds all that the second does. */
export function containsFinished(finished: FinishedOffsets, other: FinishedOffsets): boolean {
  return subtractFinished(other, finished).length === 0
}

/** Offsets in all of the runs, holes included. */
export function offsetsIn(runs: readonly OffsetRun[]): number {
  return runs.reduce((sum, { start, end }) => sum + end - start, 0)
}

export function isInRuns(runs: readonly OffsetRun[], offset: number): boolean {
  const index = indexEndingAfter(runs, offset)
  return index < runs.length && runs[index]!.start <= offset
}

/** Of the first that ends behind the offset, among ranges that are ascending and apart. */
export function indexEndingAfter(ranges: readonly { end: number }[], offset: number): number {
  let low = 0
  let high = ranges.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (ranges[middle]!.end <= offset) low = middle + 1
    else high = middle
  }
  return low
}

/** As a tally writes them: a gap and a length in turn, the gap from the end of the run before, at first from `start`. */
export function toPairs(runs: readonly OffsetRun[], start: number): number[] {
  const pairs: number[] = []
  let at = start
  for (const run of runs) {
    pairs.push(run.start - at, run.end - run.start)
    at = run.end
  }
  return pairs
}

/** Null for numbers that are no such pairs: a gap or length below zero, or one without its other. */
export function fromPairs(pairs: readonly number[], start: number): OffsetRun[] | null {
  if (pairs.length % 2 !== 0) return null
  const runs: OffsetRun[] = []
  let at = start
  for (let index = 0; index < pairs.length; index += 2) {
    const gap = pairs[index]!
    const length = pairs[index + 1]!
    if (!(gap >= 0) || !(length > 0)) return null
    const end = at + gap + length
    runs.push({ start: at + gap, end })
    at = end
  }
  return runs
}

/** Adds runs to a list of runs that mostly lie before them; the list is changed. */
export function addRuns(list: OffsetRun[], runs: readonly OffsetRun[]): void {
  const first = runs[0]
  if (!first) return
  let at = list.length
  while (at > 0 && list[at - 1]!.end >= first.start) at--
  list.push(...uniteRuns(list.splice(at), runs))
}

/** The runs that some offsets make, which may be in any order and more than once there. */
export function runsOf(offsets: readonly number[]): OffsetRun[] {
  const runs: OffsetRun[] = []
  let last: OffsetRun | null = null
  for (const offset of Float64Array.from(offsets).sort()) {
    if (last !== null && offset <= last.end) last.end = Math.max(last.end, offset + 1)
    else runs.push((last = { start: offset, end: offset + 1 }))
  }
  return runs
}
