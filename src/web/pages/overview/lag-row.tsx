import { useRef } from 'preact/hooks'
import { durationText } from '../../../core/duration.ts'
import { Badge, type Tone } from '../../components/badge.tsx'
import { countOf } from '../../components/figures.ts'
import { Row } from './problem-row.tsx'

/** How long a look back for the trend is, in ms. */
const trendMs = 45_000

/** Calls that wait, and whether they become more. */
export function LagRow({ calls, seconds }: { calls: number; seconds: number | null }) {
  const seen = useRef<{ at: number; calls: number }[]>([])
  const at = Date.now()
  if (seen.current.at(-1)?.calls !== calls)
    seen.current = [...seen.current.filter((each) => at - each.at < 4 * trendMs), { at, calls }]
  const before = seen.current.find((each) => at - each.at >= trendMs)
  const trend =
    !before || before.calls === calls
      ? ''
      : calls > before.calls
        ? ', and more than before'
        : ', and fewer than before'
  const tone: Tone = trend.includes('more') ? 'bad' : 'warn'
  const work =
    seconds === null
      ? 'none was finished in the last minutes'
      : `about ${durationText(seconds * 1_000)} of work`
  return (
    <Row
      badge={<Badge tone={tone} text="lag" />}
      title={`${countOf(calls, 'call')} wait for a forwarder`}
      text={`That is ${work}${trend}. More forwarders, up to one for each partition, take it off faster.`}
    />
  )
}
