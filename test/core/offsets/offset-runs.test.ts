import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  decodeFinished,
  encodeFinished,
  metadataLimit,
  type OffsetRun,
} from '../../../src/core/offsets/offset-runs.ts'

/** Runs above `position` from distances: gap, length, gap, length … */
function runsOf(position: number, distances: readonly [gap: number, length: number][]): OffsetRun[] {
  let at = position
  return distances.map(([gap, length]) => {
    const start = at + gap
    at = start + length
    return { start, end: at }
  })
}

/** Cuts runs to those that lie within `span` offsets above the position. */
const within = (runs: readonly OffsetRun[], end: number): OffsetRun[] =>
  runs.filter((run) => run.start < end).map((run) => ({ start: run.start, end: Math.min(run.end, end) }))

const offset = fc.integer({ min: 0, max: 2 ** 50 })
const smallRuns = (maxLength: number) =>
  fc.array(fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 4 })), {
    maxLength,
    size: 'max',
  })
const anyRuns = fc.array(
  fc.tuple(fc.integer({ min: 1, max: 100_000 }), fc.integer({ min: 1, max: 100_000 })),
  { maxLength: 50 },
)

test('a position without finished offsets above it takes five bytes', () => {
  assert.equal(encodeFinished(7, []), '1.-.')
  assert.deepEqual(decodeFinished(7, '1.-.'), [])
})

test('encoded offsets are decoded again, in either form', () => {
  fc.assert(
    fc.property(offset, fc.oneof(smallRuns(400), anyRuns), (position, distances) => {
      const runs = runsOf(position, distances)
      assert.deepEqual(decodeFinished(position, encodeFinished(position, runs)), runs)
    }),
  )
})

test('the shorter form is chosen', () => {
  const alternating = runsOf(
    0,
    Array.from({ length: 100 }, () => [1, 1]),
  )
  assert.match(encodeFinished(0, alternating), /^1\.b\./)
  assert.match(encodeFinished(0, [{ start: 1, end: 50_000 }]), /^1\.r\./)
})

test('a map of up to 20,000 offsets always fits completely, whatever its pattern', () => {
  const span = 20_000
  const check = (position: number, runs: readonly OffsetRun[]) => {
    const metadata = encodeFinished(position, runs)
    assert.ok(Buffer.byteLength(metadata) <= metadataLimit)
    assert.deepEqual(decodeFinished(position, metadata), runs)
  }
  for (const [gap, length] of [
    [1, 1],
    [1, 2],
    [2, 1],
    [3, 1],
    [7, 1],
    [1, 127],
    [128, 1],
    [1, 128],
    [129, 130],
  ] as const) {
    const pattern = runsOf(
      5,
      Array.from({ length: span }, () => [gap, length] as [number, number]),
    )
    check(5, within(pattern, 5 + span))
  }
  const distance = fc.oneof(
    fc.constant(1),
    fc.integer({ min: 1, max: 12 }),
    fc.constantFrom(126, 127, 128, 129, 1_000, 16_383, 16_384),
  )
  fc.assert(
    fc.property(
      offset,
      fc.array(fc.tuple(distance, distance), { minLength: 1, maxLength: 10_000, size: 'max' }),
      (position, distances) => check(position, within(runsOf(position, distances), position + span)),
    ),
    { numRuns: 60 },
  )
})

test('larger maps leave out only the smallest runs and never mark an unfinished offset as finished', () => {
  const length = fc.oneof(
    { weight: 5, arbitrary: fc.integer({ min: 1, max: 6 }) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 300 }) },
  )
  fc.assert(
    fc.property(
      offset,
      fc.array(fc.tuple(fc.integer({ min: 1, max: 20 }), length), {
        minLength: 2_000,
        maxLength: 9_000,
        size: 'max',
      }),
      (position, distances) => {
        const runs = runsOf(position, distances)
        const metadata = encodeFinished(position, runs)
        assert.ok(Buffer.byteLength(metadata) <= metadataLimit, `${Buffer.byteLength(metadata)} bytes`)
        const read = decodeFinished(position, metadata)
        const given = new Map(runs.map((run) => [run.start, run.end]))
        for (const run of read) assert.equal(given.get(run.start), run.end, 'a run that was not given')
        const kept = new Set(read.map((run) => run.start))
        const lengths = (some: readonly OffsetRun[]) => some.map((run) => run.end - run.start)
        const shortestKept = lengths(read).reduce((a, b) => Math.min(a, b), Infinity)
        const longestLeft = lengths(runs.filter((run) => !kept.has(run.start))).reduce(
          (a, b) => Math.max(a, b),
          0,
        )
        assert.ok(shortestKept >= longestLeft, `kept ${shortestKept}, left out ${longestLeft}`)
        if (read.length < runs.length) assert.ok(metadata.length > metadataLimit - 200, 'room is left unused')
      },
    ),
    { numRuns: 60 },
  )
})

test('the map takes at most 4,000 bytes even for the largest span that memory allows', () => {
  for (const every of [2, 3, 5, 10, 50]) {
    const runs = runsOf(
      0,
      Array.from({ length: 100_000 / every }, () => [1, every - 1] as [number, number]),
    )
    const metadata = encodeFinished(0, runs)
    assert.ok(Buffer.byteLength(metadata) <= metadataLimit)
    const read = decodeFinished(0, metadata)
    assert.ok(read.length > 0 && read.every((run) => run.start % every === 1 && run.end % every === 0))
  }
})

test('the map leaves bytes free for the ledger, and text after a third dot is ignored', () => {
  fc.assert(
    fc.property(
      offset,
      smallRuns(9_000),
      fc.stringMatching(/^[\w.=+/-]{0,100}$/),
      (position, distances, chain) => {
        const runs = runsOf(position, distances)
        const metadata = encodeFinished(position, runs)
        assert.ok(metadata.length + 120 <= metadataLimit)
        assert.deepEqual(decodeFinished(position, `${metadata}.${chain}`), decodeFinished(position, metadata))
      },
    ),
    { numRuns: 40 },
  )
})

test('foreign metadata is ignored and never throws', () => {
  for (const foreign of [
    null,
    undefined,
    '',
    'NO_METADATA',
    '1',
    '1.',
    '1.r',
    '1.x.AAAA',
    '2.r.AQE',
    ' 1.r.AQE',
    '1.r.A+/=',
    '{"a":1}',
    'bitset:AAAA',
  ]) {
    assert.deepEqual(decodeFinished(5, foreign), [], String(foreign))
  }
  fc.assert(
    fc.property(fc.string(), (text) => {
      if (!/^1\.[rb]\./.test(text)) assert.deepEqual(decodeFinished(0, text), [])
    }),
  )
})

test('a truncated map yields only runs that it contained', () => {
  fc.assert(
    fc.property(smallRuns(300), fc.nat(), (distances, cut) => {
      const runs = runsOf(9, distances)
      const metadata = encodeFinished(9, runs)
      const finished = new Set(
        runs.flatMap(({ start, end }) => Array.from({ length: end - start }, (_, i) => start + i)),
      )
      const shorter = metadata.slice(0, 4 + (cut % Math.max(1, metadata.length - 3)))
      for (const run of decodeFinished(9, shorter)) {
        for (let at = run.start; at < run.end; at++) assert.ok(finished.has(at), `${at} in ${shorter}`)
      }
    }),
  )
})
