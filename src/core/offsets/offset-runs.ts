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

/** What of it lies before this offset. */
export function finishedBefore({ position, runs }: FinishedOffsets, end: number): FinishedOffsets {
  return { position: Math.min(position, end), runs: subtractRuns(runs, [{ start: end, end: Infinity }]) }
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

/**
 * The finished offsets above a commit's position, as they ride in the commit's metadata (docs/architecture.md).
 * Text: `1.<form>.<base64url>`, where the form is `r` (run lengths), `b` (bitset) or `-` (none), and, behind a
 * third dot, the id of the commit's tally.
 */
export interface OffsetRun {
  /** First offset of the run. */
  start: number
  /** One past the last offset. */
  end: number
}

/** The broker takes 4,096 bytes of metadata; some are kept free for the ledger's chain. */
export const metadataLimit = 4_000
const reservedBytes = 120
const payloadLimit = Math.floor(((metadataLimit - reservedBytes - 4) * 3) / 4)

function varintSize(value: number): number {
  let size = 1
  while (value >= 128) {
    value = Math.floor(value / 128)
    size++
  }
  return size
}

/** Gap and length of each run in turn, as varints: the gap is from the end of the run before. */
function runsSize(position: number, runs: readonly OffsetRun[]): number {
  let size = 0
  let at = position
  for (const run of runs) {
    size += varintSize(run.start - at) + varintSize(run.end - run.start)
    at = run.end
  }
  return size
}

function encodeRuns(position: number, runs: readonly OffsetRun[]): Uint8Array {
  const bytes = new Uint8Array(runsSize(position, runs))
  let length = 0
  const put = (value: number) => {
    while (value >= 128) {
      bytes[length++] = (value % 128) | 128
      value = Math.floor(value / 128)
    }
    bytes[length++] = value
  }
  let at = position
  for (const run of runs) {
    put(run.start - at)
    put(run.end - run.start)
    at = run.end
  }
  return bytes
}

function encodeBitset(position: number, runs: readonly OffsetRun[]): Uint8Array {
  const last = runs[runs.length - 1]!
  const bytes = new Uint8Array(Math.ceil((last.end - position) / 8))
  for (const run of runs) {
    for (let bit = run.start - position; bit < run.end - position; bit++) bytes[bit >> 3]! |= 1 << (bit & 7)
  }
  return bytes
}

/**
 * Leaves out the smallest runs until the rest fits: those offsets are repeated after a crash, never lost. Null where
 * not even those that must stay fit.
 */
function largestThatFit(
  position: number,
  runs: readonly OffsetRun[],
  mustStay: ReadonlySet<OffsetRun>,
): readonly OffsetRun[] | null {
  const free = runs.filter((run) => !mustStay.has(run))
  const lengths = free.map((run) => run.end - run.start).sort((a, b) => a - b)
  const needed = runs.filter((run) => mustStay.has(run))
  let kept = runsSize(position, needed) <= payloadLimit ? needed : null
  let low = 0
  let high = lengths.length
  while (low < high) {
    const middle = (low + high) >> 1
    const min = lengths[middle]!
    // Of runs as long as the shortest one kept, the earliest stay.
    let ties = lengths.length - middle - lengths.filter((length) => length > min).length
    const candidate = runs.filter((run) => {
      const length = run.end - run.start
      return mustStay.has(run) || length > min || (length === min && ties-- > 0)
    })
    if (runsSize(position, candidate) <= payloadLimit) {
      kept = candidate
      high = middle
    } else {
      low = middle + 1
    }
  }
  return kept
}

/** What of the runs goes into the metadata, and its text without the ledger's part. */
export interface FinishedMap {
  runs: readonly OffsetRun[]
  metadata: string
}

/**
 * What is once in a committed map stays there: the ledger counts it as tallied. So runs that hold any of `committed` come
 * first. They have room: either they are not more than they were, or a bitset that held them before is shorter now.
 * @param position the offset committed: every offset below it is finished
 * @param runs finished runs above `position`, ascending, apart from each other
 * @param committed the runs of the last acknowledged map; they lie within `runs` or below the position
 */
export function fitFinished(
  position: number,
  runs: readonly OffsetRun[],
  committed: readonly OffsetRun[] = [],
): FinishedMap {
  const last = runs[runs.length - 1]
  if (last === undefined) return { runs, metadata: '1.-.' }
  const bitsetSize = Math.ceil((last.end - position) / 8)
  const size = runsSize(position, runs)
  if (bitsetSize < size && bitsetSize <= payloadLimit) return asBitset(position, runs)
  if (size <= payloadLimit) return asRuns(position, runs)
  const before = clipped(committed, position, Infinity)
  const largest = largestThatFit(position, runs, holding(runs, before))
  if (largest) return asRuns(position, largest)
  const horizon = position + payloadLimit * 8
  if (before[before.length - 1]!.end <= horizon) return asBitset(position, clipped(runs, position, horizon))
  return asRuns(position, before)
}

const asBitset = (position: number, runs: readonly OffsetRun[]): FinishedMap => ({
  runs,
  metadata: `1.b.${toBase64(encodeBitset(position, runs))}`,
})

const asRuns = (position: number, runs: readonly OffsetRun[]): FinishedMap => ({
  runs,
  metadata: `1.r.${toBase64(encodeRuns(position, runs))}`,
})

/** The parts of the runs from `from` up to, not including, `to`. */
function clipped(runs: readonly OffsetRun[], from: number, to: number): OffsetRun[] {
  return runs
    .filter(({ start, end }) => end > from && start < to)
    .map(({ start, end }) => ({ start: Math.max(start, from), end: Math.min(end, to) }))
}

/** Those of the runs that hold any of `parts`. Both ascending. */
function holding(runs: readonly OffsetRun[], parts: readonly OffsetRun[]): ReadonlySet<OffsetRun> {
  const found = new Set<OffsetRun>()
  let next = 0
  for (const part of parts) {
    while (next < runs.length && runs[next]!.end <= part.start) next++
    if (next < runs.length && runs[next]!.start < part.end) found.add(runs[next]!)
  }
  return found
}

/** The text of `fitFinished` where nothing was committed before. */
export function encodeFinished(position: number, runs: readonly OffsetRun[]): string {
  return fitFinished(position, runs).metadata
}

/** Metadata that ends in the id of its commit's tally. The id has at most 100 characters, no dot. */
export function withTally(metadata: string, tallyId: string): string {
  return `${metadata}.${tallyId}`
}

/** The id of the tally that a commit's metadata names; null for one that names none. */
export function tallyIdOf(metadata: string | null | undefined): string | null {
  return /^1\.[rb-]\.[A-Za-z0-9_-]*\.([A-Za-z0-9_-]+)$/.exec(metadata ?? '')?.[1] ?? null
}

/** The runs that `encodeFinished` wrote; none for metadata that is not of that form (another tool's commit). */
export function decodeFinished(position: number, metadata: string | null | undefined): OffsetRun[] {
  const match = /^1\.([rb-])\.([A-Za-z0-9_-]*)(?:\..*)?$/.exec(metadata ?? '')
  if (!match) return []
  const bytes = fromBase64(match[2]!)
  return match[1] === 'b' ? decodeBitset(position, bytes) : decodeRuns(position, bytes)
}

function decodeRuns(position: number, bytes: Uint8Array): OffsetRun[] {
  const runs: OffsetRun[] = []
  let index = 0
  const take = (): number | null => {
    let value = 0
    let factor = 1
    while (index < bytes.length) {
      const byte = bytes[index++]!
      value += (byte & 127) * factor
      if (byte < 128) return value
      factor *= 128
    }
    return null
  }
  let at = position
  while (index < bytes.length) {
    const gap = take()
    const length = take()
    if (gap === null || length === null) return runs
    const start = at + gap
    at = start + length
    if (length > 0) runs.push({ start, end: at })
  }
  return runs
}

function decodeBitset(position: number, bytes: Uint8Array): OffsetRun[] {
  const runs: OffsetRun[] = []
  let open: OffsetRun | null = null
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const finished = (bytes[bit >> 3]! & (1 << (bit & 7))) !== 0
    if (!finished) open = null
    else if (open) open.end = position + bit + 1
    else runs.push((open = { start: position + bit, end: position + bit + 1 }))
  }
  return runs
}

const toBase64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')
const fromBase64 = (text: string): Uint8Array => Buffer.from(text, 'base64url')
