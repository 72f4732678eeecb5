import { countOf } from '../figures.ts'

interface Bar {
  good: number
  bad: number
}

const [height, barWidth, gap] = [26, 4, 1]

/** Bars of what went well and what did not, one for each hour; what the bars say in words for screen readers. */
export function Sparkline({ bars, label }: { bars: readonly Bar[]; label: string }) {
  const most = Math.max(1, ...bars.map(({ good, bad }) => good + bad))
  // What is there can be seen, however little it is.
  const scaled = (count: number) => (count === 0 ? 0 : Math.max(1.5, (count / most) * height))
  const width = bars.length * (barWidth + gap) - gap
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      role="img"
      aria-label={label}
    >
      {bars.map(({ good, bad }, index) => {
        const x = index * (barWidth + gap)
        const [goodHeight, badHeight] = [scaled(good), scaled(bad)]
        const top = Math.max(0, height - goodHeight - badHeight)
        return (
          <g key={index}>
            <rect class="spark-base" x={x} y={height - 1} width={barWidth} height={1} />
            {good > 0 && (
              <rect class="spark-good" x={x} y={height - goodHeight} width={barWidth} height={goodHeight} />
            )}
            {bad > 0 && <rect class="spark-bad" x={x} y={top} width={barWidth} height={badHeight} />}
          </g>
        )
      })}
    </svg>
  )
}

const hoursShown = 24
const hourMs = 3_600_000

/** The last 24 hours, of which the API names those that have counts. */
export function DaySparkline({
  hours,
  now,
}: {
  hours: readonly { at: string; delivered: number; failed: number }[]
  now: number
}) {
  const first = (Math.floor(now / hourMs) + 1 - hoursShown) * hourMs
  const bars: Bar[] = Array.from({ length: hoursShown }, () => ({ good: 0, bad: 0 }))
  let [delivered, failed] = [0, 0]
  for (const hour of hours) {
    const bar = bars[Math.floor((Date.parse(hour.at) - first) / hourMs)]
    if (!bar) continue
    bar.good += hour.delivered
    bar.bad += hour.failed
    delivered += hour.delivered
    failed += hour.failed
  }
  return (
    <Sparkline bars={bars} label={`24 hours: ${delivered} delivered, ${countOf(failed, 'failed attempt')}`} />
  )
}
