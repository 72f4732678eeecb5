const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

// The three forms of an HTTP-date (RFC 9110, section 5.6.7). Recipients must take all three.
const imfFixdate =
  /^[a-z]{3}, (?<day>\d{2}) (?<month>[a-z]{3}) (?<year>\d{4}) (?<time>\d{2}:\d{2}:\d{2}) GMT$/i
const rfc850 = /^[a-z]{6,9}, (?<day>\d{2})-(?<month>[a-z]{3})-(?<year>\d{2}) (?<time>\d{2}:\d{2}:\d{2}) GMT$/i
const asctime = /^[a-z]{3} (?<month>[a-z]{3}) (?<day>[ \d]\d) (?<time>\d{2}:\d{2}:\d{2}) (?<year>\d{4})$/i

/**
 * How long a receiver asks us to wait (RFC 9110, section 10.2.3), in ms from `now` (epoch ms): 0 for a date that
 * has passed, null for what is neither a whole number of seconds nor an HTTP-date. Not bounded here: the
 * disposition cuts it to what fits the retry window.
 */
export function parseRetryAfter(value: string, now: number): number | null {
  const text = value.trim()
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, Number.MAX_SAFE_INTEGER)
  const at = parseHttpDate(text, now)
  return at === null ? null : Math.max(0, at - now)
}

/** Epoch ms of an HTTP-date, or null. `now` places a two-digit year. */
function parseHttpDate(text: string, now: number): number | null {
  const parts = (imfFixdate.exec(text) ?? rfc850.exec(text) ?? asctime.exec(text))?.groups
  if (!parts) return null
  const year = parts.year!.length === 2 ? nearestYear(Number(parts.year), now) : Number(parts.year)
  const month = months.indexOf(parts.month!.toLowerCase())
  const day = Number(parts.day)
  const [hour, minute, second] = parts.time!.split(':').map(Number) as [number, number, number]
  // 60 is a leap second, which the grammar allows.
  if (month < 0 || hour > 23 || minute > 59 || second > 60) return null
  const date = new Date(Date.UTC(year, month, day))
  if (date.getUTCMonth() !== month || date.getUTCDate() !== day) return null
  // Date.UTC takes the years 0-99 for 1900-1999.
  if (year < 100) date.setUTCFullYear(year)
  return date.getTime() + ((hour * 60 + minute) * 60 + second) * 1000
}

/** A date that seems to be more than 50 years ahead is the most recent past year with those digits. */
function nearestYear(digits: number, now: number): number {
  const thisYear = new Date(now).getUTCFullYear()
  const inThisCentury = thisYear - (thisYear % 100) + digits
  return inThisCentury > thisYear + 50 ? inThisCentury - 100 : inThisCentury
}
