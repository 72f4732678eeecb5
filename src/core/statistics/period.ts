import { formatDuration, parseDuration, parseMoment } from '../duration.ts'
import { fault, type Fault } from '../settings/fault.ts'
import { keptMs, spanMs, type RollupSpan } from './rollup.ts'

/** What is asked for, as people write it. */
export interface AskedPeriod {
  window?: string | undefined
  step?: string | undefined
  until?: string | undefined
}

/** Points in time, each of which stands for `stepMs`; epoch ms, `to` is not in it. */
export interface Points {
  span: RollupSpan
  from: number
  to: number
  stepMs: number
}

export const maxPoints = 1_500
const defaultWindow = '1h'
/** Steps that are chosen from where none is given. */
const usualSteps = ['1m', '5m', '15m', '1h', '6h', '1d'] as const

/**
 * Everything that is wrong is named.
 *
 * @param now epoch ms
 * @param fewPoints without a step, the shortest usual one that makes no more points is chosen
 */
export function pointsOf(
  { window, step, until }: AskedPeriod,
  now: number,
  fewPoints = 120,
): Points | Fault[] {
  const faults: Fault[] = []
  const wrong = (field: string, message: string) => void faults.push(fault('usage', field, message))
  const windowMs = parseDuration(window ?? defaultWindow)
  const stepMs = step === undefined ? null : parseDuration(step)
  const end = until === undefined ? now : parseMoment(until, now)
  if (windowMs === null || windowMs < spanMs.minute || windowMs > keptMs.hour)
    wrong('window', 'takes a duration from 1m to 90d, such as 1h')
  if (step !== undefined && (stepMs === null || stepMs < spanMs.minute || stepMs % spanMs.minute !== 0))
    wrong('step', 'takes a duration of whole minutes, such as 1m or 1h')
  if (end === null) wrong('until', 'takes an ISO time such as 2026-01-31T12:00:00Z, or a duration such as 2h')
  else if (end > now) wrong('until', 'lies in the future')
  if (faults.length > 0) return faults
  const chosenMs = stepMs ?? usualStepOf(windowMs!, fewPoints)
  if (windowMs! % chosenMs !== 0)
    wrong(
      step === undefined ? 'window' : 'step',
      `does not divide the window of ${formatDuration(windowMs!)}`,
    )
  else if (windowMs! / chosenMs > maxPoints)
    wrong('step', `makes ${windowMs! / chosenMs} points, at most ${maxPoints} are given: take a longer one`)
  const span = chosenMs % spanMs.hour === 0 ? 'hour' : 'minute'
  const to = Math.ceil(end! / chosenMs) * chosenMs
  if (span === 'minute' && now - (to - windowMs!) > keptMs.minute + spanMs.hour)
    wrong('step', 'must be whole hours: single minutes are kept for 7 days')
  return faults.length > 0 ? faults : { span, from: to - windowMs!, to, stepMs: chosenMs }
}

function usualStepOf(windowMs: number, fewPoints: number): number {
  const fits = (stepMs: number) => windowMs % stepMs === 0 && windowMs / stepMs <= maxPoints
  const steps = usualSteps.map((step) => parseDuration(step)!).filter(fits)
  return steps.find((stepMs) => windowMs / stepMs <= fewPoints) ?? steps.at(-1) ?? windowMs
}
