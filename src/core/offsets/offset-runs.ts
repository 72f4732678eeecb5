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
