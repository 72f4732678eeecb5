import { countOf } from './figures.ts'

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
  /** One shape for all bars of a kind: a list draws many of these. */
  const shape = (rect: (bar: Bar) => readonly [top: number, height: number]) =>
    bars
      .map((bar, index) => {
        const [top, tall] = rect(bar)
        return tall === 0 ? '' : `M${index * (barWidth + gap)} ${top}h${barWidth}v${tall}h${-barWidth}z`
      })
      .join('')
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
      role="img"
      aria-label={label}
    >
      <path class="spark-base" d={shape(() => [height - 1, 1])} />
      <path class="spark-good" d={shape(({ good }) => [height - scaled(good), scaled(good)])} />
      <path
        class="spark-bad"
        d={shape(({ good, bad }) => [Math.max(0, height - scaled(good) - scaled(bad)), scaled(bad)])}
      />
    </svg>
  )
}

const hoursShown = 24
const hourMs = 3_600_000

/** The last 24 hours, of which the API names those that have counts. */
export function DaySparkline({
  hours,
}: {
  hours: readonly { at: string; delivered: number; failed: number }[]
}) {
  const first = (Math.floor(Date.now() / hourMs) + 1 - hoursShown) * hourMs
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
