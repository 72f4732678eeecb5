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

const iso8601 =
  /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,18}))?)?(?:[Zz]|([+-])(\d\d):?(\d\d)?)?)?$/

/**
 * Reads an ISO 8601 date, with or without a time: `Z`, `+00:00`, `+0000` or `+00`, none meaning UTC; fractions of
 * a second are cut to milliseconds. Epoch milliseconds, or null for anything else, dates that no calendar has
 * (31 April), and times outside the years 1 to 9999.
 */
export function parseTimestamp(text: string): number | null {
  const match = iso8601.exec(text)
  if (!match) return null
  const [year, month, day, hours, minutes, seconds] = match.slice(1, 7).map((part) => Number(part ?? 0))
  if (hours! > 23 || minutes! > 59 || seconds! > 59) return null
  const ms = Number((match[7] ?? '').padEnd(3, '0').slice(0, 3))
  const date = new Date(0)
  // Date.UTC takes the years 0 to 99 for 1900 to 1999.
  date.setUTCFullYear(year!, month! - 1, day)
  if (date.getUTCMonth() !== month! - 1 || date.getUTCDate() !== day) return null
  const offsetHours = Number(match[9] ?? 0)
  const offsetMinutes = Number(match[10] ?? 0)
  if (offsetHours > 23 || offsetMinutes > 59) return null
  const offset = (match[8] === '-' ? -1 : 1) * (offsetHours * 60 + offsetMinutes)
  const epochMs = date.getTime() + ((hours! * 60 + minutes! - offset) * 60 + seconds!) * 1_000 + ms
  return isTimestamp(epochMs) ? epochMs : null
}
