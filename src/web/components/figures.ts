// Numbers and times as text. What is not known is said in words by the components, never shown as 0.
import { durationText } from '../../core/duration.ts'

const whole = new Intl.NumberFormat('en')
const compactForm = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

/** `1,204`. */
export const countText = (count: number): string => whole.format(count)

/** `1,204`, and `12.3K` from ten thousand on. */
export const compactText = (count: number): string =>
  Math.abs(count) < 10_000 ? whole.format(count) : compactForm.format(count)

/** `1 call`, `2 calls`. */
export const countOf = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)} ${count === 1 ? one : many}`

/** Of a share from 0 to 1: `99.98 %`. Only what has no failure at all is 100 %. */
export function percentText(share: number): string {
  const percent = share * 100
  const digits = percent >= 99 && percent < 100 ? 2 : percent < 10 && percent > 0 ? 1 : 0
  const rounded = Math.floor(percent * 10 ** digits + 1e-9) / 10 ** digits
  return `${rounded.toFixed(digits)} %`
}

/** `12.5/s`. */
export function rateText(perSecond: number): string {
  const digits = perSecond === 0 || perSecond >= 100 ? 0 : perSecond >= 10 ? 1 : 2
  return `${new Intl.NumberFormat('en', { maximumFractionDigits: digits }).format(perSecond)}/s`
}

/** `8 ms`, `1.25 s`. */
export const msText = (ms: number): string =>
  ms < 1_000 ? `${Math.round(ms)} ms` : `${Number((ms / 1_000).toFixed(ms < 10_000 ? 2 : 1))} s`

/** `12 min ago`, `in 3 h`, `now`. */
export function relativeText(at: number, now: number): string {
  const ms = at - now
  if (Math.abs(ms) < 1_500) return 'now'
  const text = durationText(Math.abs(ms))
  return ms < 0 ? `${text} ago` : `in ${text}`
}

/** `2026-01-31 12:00:03.250 GMT+1`, in the browser's zone. */
export function absoluteText(at: number): string {
  const date = new Date(at)
  const two = (part: number) => String(part).padStart(2, '0')
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  return `${day} ${time}.${String(date.getMilliseconds()).padStart(3, '0')} ${zoneText(date)}`
}

/** `18:19:05` in the browser's zone, and the day where it is another one than now. */
export function clockText(at: number, now: number): string {
  const text = absoluteText(at)
  const [day, time] = [text.slice(0, 10), text.slice(11, 19)]
  return day === absoluteText(now).slice(0, 10) ? time : `${day} ${time}`
}

function zoneText(date: Date): string {
  const minutes = -date.getTimezoneOffset()
  if (minutes === 0) return 'UTC'
  const hours = Math.floor(Math.abs(minutes) / 60)
  const rest = Math.abs(minutes) % 60
  return `UTC${minutes < 0 ? '-' : '+'}${hours}${rest === 0 ? '' : `:${String(rest).padStart(2, '0')}`}`
}

/** `tls` → `TLS not trusted`: codes of the API in words. */
export const wordsOf = (code: string): string => words[code] ?? code.replaceAll('_', ' ')

const words: Record<string, string> = {
  half_open: 'trying again',
  ramp: 'recovering',
  status_5xx: 'answered 5xx',
  status_4xx: 'answered 4xx',
  status_429: 'answered 429',
  gone: 'gone (410)',
  tls: 'TLS not trusted',
  blocked: 'address not allowed',
  proxy: 'stopped at the proxy',
  no_token: 'no token for the login',
  network: 'no connection',
  timeout: 'no answer in time',
  not_attempted: 'never attempted',
  not_chosen: 'type or event not chosen',
  no_consent: 'consent denied',
  filtered: 'condition not met',
  order_limit: 'too many waited behind them',
  order_wait: 'waited for too long',
  order_room: 'no room for more that wait',
}

/** What is said of an attempt beside its status; null where that says it already. */
export const remarkOf = (attempt: { status: number | null; detail: string | null }): string | null =>
  attempt.detail === null || attempt.detail === `status ${attempt.status}` ? null : attempt.detail
