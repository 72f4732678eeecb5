import fc from 'fast-check'

/** Lengths about the places where a length takes a byte more, in letters of one to four bytes. */
const length = fc.oneof(
  fc.nat(80),
  fc.integer({ min: 2_720, max: 2_740 }),
  fc.integer({ min: 8_180, max: 8_200 }),
)

/** Texts whose length takes one byte to three, in letters of one byte to four. */
export const text = fc
  .tuple(
    length,
    fc.constantFrom('a', '\u00e9', '\u20ac', '\u{1f600}'),
    fc.string({ unit: 'binary', maxLength: 3 }),
  )
  .map(([length, deadLetter, end]) => deadLetter.repeat(length) + end)
export const nullableText = fc.option(text, { nil: null })

/** Part of something larger, as a Buffer and as other bytes. */
export const bytes = fc
  .tuple(length, fc.nat(255), fc.boolean())
  .map(([length, byte, isBuffer]): Uint8Array => {
    const whole = new Uint8Array(length + 8).fill(byte, 3, length + 3)
    return isBuffer ? Buffer.from(whole.buffer, 3, length) : whole.subarray(3, length + 3)
  })

/** Whole numbers about the places where one takes a byte more, and times. */
export const long = fc.oneof(
  fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }),
  fc.constantFrom(0, -0, -1, 1, 63, 64, -64, -65),
  fc
    .tuple(fc.constantFrom(-1, 1), fc.nat(53), fc.integer({ min: -2, max: 1 }))
    .map(([sign, power, more]) => sign * (2 ** power + more))
    .filter((value) => Math.abs(value) < Number.MAX_SAFE_INTEGER),
)
export const nullableLong = fc.option(long, { nil: null })

export const int = fc.oneof(
  fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
  fc.constantFrom(0, -0, 63, 64, -64, -65, 200, 503, 2 ** 31 - 1, -(2 ** 31)),
)
export const nullableInt = fc.option(int, { nil: null })

export const double = fc.double()
export const nullableDouble = fc.option(double, { nil: null })

/** None, some, and enough that their count takes one more byte. */
export const listOf = <T>(item: fc.Arbitrary<T>): fc.Arbitrary<T[]> =>
  fc.constantFrom(0, 1, 2, 63, 64).chain((length) => fc.array(item, { minLength: length, maxLength: length }))
