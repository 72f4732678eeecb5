import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { absoluteText, countOf } from './figures.ts'

export interface PlotSeries {
  label: string
  /** A custom property of the style sheet, such as `--good`. */
  color: string
  values: readonly (number | null)[]
}

interface PlotProps {
  /** Names the plot, and says for screen readers what it shows. */
  title: string
  summary: string
  /** Epoch ms. */
  times: readonly number[]
  series: readonly PlotSeries[]
  /** A value as text: of the axis and the legend. */
  format: (value: number) => string
  height?: number
}

const darkScheme = window.matchMedia('(prefers-color-scheme: dark)')

/** Lines over time; what draws them is loaded with the first one. Drawn again when its size or the colour scheme changes; new values only move the lines. */
export function Plot({ title, summary, times, series, format, height = 160 }: PlotProps) {
  const frame = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const data = [times.map((at) => at / 1_000), ...series.map(({ values }) => values)] as uPlot.AlignedData
  const newest = useRef(data)
  newest.current = data
  const shape = series.map(({ label, color }) => `${label} ${color}`).join()

  useEffect(() => {
    const element = frame.current!
    let isOver = false
    const draw = async () => {
      const { default: Drawn } = await import('uplot')
      if (isOver) return
      plot.current?.destroy()
      plot.current = new Drawn(optionsOf(element, { series, format, height }), newest.current, element)
    }
    void draw()
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }))
    resized.observe(element)
    darkScheme.addEventListener('change', draw)
    return () => {
      isOver = true
      resized.disconnect()
      darkScheme.removeEventListener('change', draw)
      plot.current?.destroy()
      plot.current = null
    }
  }, [shape, height])
  useEffect(() => plot.current?.setData(data), [JSON.stringify(data)])

  return (
    <figure class="plot">
      <figcaption>{title}</figcaption>
      <div ref={frame} role="img" aria-label={summary} />
    </figure>
  )
}

function optionsOf(
  element: HTMLElement,
  { series, format, height }: Pick<PlotProps, 'series' | 'format' | 'height'>,
): uPlot.Options {
  const styles = getComputedStyle(element)
  const colorOf = (name: string) => resolved(element, styles.getPropertyValue(name))
  const axis: uPlot.Axis = {
    stroke: colorOf('--text-2'),
    grid: { stroke: colorOf('--line'), width: 1 },
    ticks: { show: false },
    font: `11px ${styles.fontFamily}`,
  }
  return {
    width: element.clientWidth,
    height: height!,
    padding: [8, 18, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { y: { range: (_, _low, high) => [0, Math.max(high * 1.1, 4)] } },
    axes: [
      { ...axis, size: 24, space: 64, grid: { show: false }, values: timeValues },
      { ...axis, size: 52, space: 32, values: (_, values) => values.map(format) },
    ],
    series: [
      {
        label: '',
        value: (_, seconds) => (seconds === null ? '' : absoluteText(seconds * 1_000).slice(0, 16)),
      },
      ...series.map(({ label, color }) => ({
        label,
        stroke: colorOf(color),
        width: 1.5,
        points: { size: 4 },
        value: (_: uPlot, value: number | null) => (value === null ? '' : format(value)),
      })),
    ],
  }
}

/** Midnights by their date, all others by their time. */
const timeValues = (_: uPlot, seconds: number[]): string[] =>
  seconds.map((second) => {
    const text = absoluteText(second * 1_000)
    return text.slice(11, 16) === '00:00' ? text.slice(5, 10) : text.slice(11, 16)
  })

/** A colour as the canvas takes it: `light-dark()` it does not. */
function resolved(element: HTMLElement, color: string): string {
  const probe = document.createElement('span')
  probe.style.color = color
  element.append(probe)
  const found = getComputedStyle(probe).color
  probe.remove()
  return found
}

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
