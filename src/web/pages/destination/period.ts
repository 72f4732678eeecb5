// The period that the page of a destination shows: one of a few that end now, or one that somebody dragged out of a plot.
import { query, setQuery } from '../../app/address.ts'

export const windows = [
  ['10m', '10 min'],
  ['1h', '1 hour'],
  ['24h', '24 hours'],
  ['7d', '7 days'],
] as const
type Window = (typeof windows)[number][0]

/** Each point, and how often it is asked for again, in ms. */
const steps: Record<Window, { step: string; everyMs: number }> = {
  '10m': { step: '1m', everyMs: 5_000 },
  '1h': { step: '1m', everyMs: 10_000 },
  '24h': { step: '15m', everyMs: 60_000 },
  '7d': { step: '1h', everyMs: 60_000 },
}

export interface Period {
  /** Null: it is a range. */
  window: Window | null
  /** As `…/stats` takes it. */
  asked: { window: string; step?: string; until?: string }
  /** How often it is asked for again, in ms; 0 for what is over. */
  everyMs: number
  /** Epoch ms; null where it ends now. */
  range: { from: number; to: number } | null
}

const minuteMs = 60_000

/** What the address says; an hour where it says nothing that can be. */
export function periodOf(params: URLSearchParams): Period {
  const [given, until] = [params.get('window') ?? '1h', params.get('until')]
  const minutes = Number(/^(\d{1,5})m$/.exec(given)?.[1])
  const to = Date.parse(until ?? '')
  if (until !== null && minutes > 0 && !Number.isNaN(to))
    return {
      ...{ window: null, everyMs: 0, asked: { window: given, until } },
      range: { from: to - minutes * minuteMs, to },
    }
  const window = windows.find(([each]) => each === given)?.[0] ?? '1h'
  const { step, everyMs } = steps[window]
  return { window, asked: { window, step }, everyMs, range: null }
}

export const shownPeriod = (): Period => periodOf(query.value)

export const chooseWindow = (window: Window): void =>
  setQuery({ window: window === '1h' ? null : window, until: null, cursor: null })

/** Whole minutes: that is what is counted. The back button leads to what was shown before. */
export function chooseRange(from: number, to: number): void {
  const [first, last] = [Math.floor(from / minuteMs), Math.ceil(to / minuteMs)]
  const window = `${Math.max(1, last - first)}m`
  const until = new Date(last * minuteMs).toISOString()
  setQuery({ window, until, cursor: null }, { replace: false })
}
