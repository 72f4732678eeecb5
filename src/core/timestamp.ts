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

/** A calendar, ordinal or week date (ISO 8601-1, 5.2.2 to 5.2.4), in its extended or its basic form. */
const isoDate = /^(\d{4})(-?)(?:(\d\d)\2(\d\d)|(\d{3})|W(\d\d)\2(\d))$/
/** Of reduced precision: the time at which the month, week or year begins. */
const isoPeriod = /^(\d{4})(?:-(\d\d)|-?W(\d\d))?$/
const isoTime = /^(\d\d)(?:(:?)(\d\d)(?:\2(\d\d)(?:[.,](\d{1,18}))?)?)?(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)?$/

/**
 * Reads an ISO 8601 date, with or without a time: `Z`, `+00:00`, `+0000` or `+00`, none meaning UTC; fractions of
 * a second are cut to milliseconds; `24:00` ends a day. Epoch milliseconds, or null for anything else, dates that no
 * calendar has (31 April), and times outside the years 1 to 9999.
 */
export function parseTimestamp(text: string): number | null {
  return parseTimestampToday(text, 0, text.length) ?? parsed(text)
}

/** The day that was read last, as `YYYY-MM-DDT`, and its beginning. */
let readDate = ''
let readDay = NaN

/**
 * `parseTimestamp` of a part of a text, without making a text of it, for the form and the day that most have:
 * `YYYY-MM-DDTHH:MM:SS.sssZ` of the day that was read last. Null for any other, which `parseTimestamp` may know.
 */
export function parseTimestampToday(text: string, start: number, end: number): number | null {
  if (end - start !== 24 || !text.startsWith(readDate, start) || readDate === '') return null
  const hours = digits(text, start + 11, 2)
  const minutes = digits(text, start + 14, 2)
  const seconds = digits(text, start + 17, 2)
  const ms = digits(text, start + 20, 3)
  if (text.charCodeAt(start + 13) !== colon || text.charCodeAt(start + 16) !== colon) return null
  if (text.charCodeAt(start + 19) !== dot || text.charCodeAt(start + 23) !== zulu) return null
  // NaN for what is no digit compares as false.
  if (!(hours < 24 && minutes < 60 && seconds < 60 && ms < 1_000)) return null
  return readDay + ((hours * 60 + minutes) * 60 + seconds) * 1_000 + ms
}

const [colon, dot, zulu] = [0x3a, 0x2e, 0x5a]

function digits(text: string, at: number, count: number): number {
  let value = 0
  for (const end = at + count; at < end; at++) {
    const digit = text.charCodeAt(at) - 0x30
    value = digit >= 0 && digit <= 9 ? value * 10 + digit : NaN
  }
  return value
}

function parsed(text: string): number | null {
  const timeAt = text.search(/[Tt ]/)
  const day = timeAt < 0 ? (dayOf(text) ?? periodOf(text)) : dayOf(text.slice(0, timeAt))
  const sinceMidnight = timeAt < 0 ? 0 : timeOf(text.slice(timeAt + 1))
  if (day === null || sinceMidnight === null) return null
  const epochMs = day + sinceMidnight
  if (!isTimestamp(epochMs)) return null
  if (text.length === 24 && text[10] === 'T') {
    readDate = text.slice(0, 11)
    readDay = day
  }
  return epochMs
}

// Each of these gives epoch milliseconds, UTC, or null.

function dayOf(date: string): number | null {
  const match = isoDate.exec(date)
  if (!match) return null
  // NaN for a group that is not there.
  const [, year, , month, day, ordinal, week, weekday] = match.map(Number)
  if (!Number.isNaN(week!)) return weekDay(year!, week!, weekday!)
  if (!Number.isNaN(ordinal!)) {
    const found = dateOf(year!, 1, ordinal!)
    return found.getUTCFullYear() === year && ordinal! > 0 ? found.getTime() : null
  }
  const found = dateOf(year!, month!, day!)
  return found.getUTCMonth() === month! - 1 && found.getUTCDate() === day ? found.getTime() : null
}

function periodOf(date: string): number | null {
  const match = isoPeriod.exec(date)
  if (!match) return null
  if (match[3] !== undefined) return weekDay(Number(match[1]), Number(match[3]), 1)
  const month = Number(match[2] ?? 1)
  return month >= 1 && month <= 12 ? dateOf(Number(match[1]), month, 1).getTime() : null
}

/** Weeks begin on Mondays; a year's first one has its 4th of January. */
function weekDay(year: number, week: number, weekday: number): number | null {
  const firstMonday = (of: number): number => {
    const fourth = dateOf(of, 1, 4)
    return fourth.getTime() - ((fourth.getUTCDay() + 6) % 7) * dayMs
  }
  const monday = firstMonday(year) + (week - 1) * 7 * dayMs
  if (week < 1 || monday >= firstMonday(year + 1) || weekday < 1 || weekday > 7) return null
  return monday + (weekday - 1) * dayMs
}

/** Since midnight, in UTC. */
function timeOf(time: string): number | null {
  const match = isoTime.exec(time)
  if (!match) return null
  const [hours, minutes, seconds, offsetHours, offsetMinutes] = [1, 3, 4, 7, 8].map((group) =>
    Number(match[group] ?? 0),
  )
  const isEndOfDay = hours === 24 && minutes === 0 && seconds === 0 && !/[1-9]/.test(match[5] ?? '')
  if ((hours! > 23 && !isEndOfDay) || minutes! > 59 || seconds! > 59) return null
  if (offsetHours! > 23 || offsetMinutes! > 59) return null
  const ms = Number((match[5] ?? '').padEnd(3, '0').slice(0, 3))
  const offset = (match[6] === '-' ? -1 : 1) * (offsetHours! * 60 + offsetMinutes!)
  return ((hours! * 60 + minutes! - offset) * 60 + seconds!) * 1_000 + ms
}

/** Date.UTC takes the years 0 to 99 for 1900 to 1999. */
function dateOf(year: number, month: number, day: number): Date {
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  return date
}
