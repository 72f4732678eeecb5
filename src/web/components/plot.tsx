import { useEffect, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import { absoluteText } from './figures.ts'
import { knownFrom, partsOfLine, stacked, type KnownPoints } from './plot-parts.ts'

export interface PlotSeries {
  label: string
  /** A custom property of the style sheet, such as `--good`. */
  color: string
  values: readonly (number | null)[]
}

export interface PlotMark {
  at: number
  text: string
}

interface PlotProps {
  /** Names the plot, and says for screen readers what it shows. */
  title: string
  summary: string
  /** Epoch ms. */
  times: readonly number[]
  series: readonly PlotSeries[]
  known: KnownPoints
  /** What happened, drawn as lines across: epoch ms, and what it was. */
  marks?: readonly PlotMark[]
  /** A part was chosen by dragging over it, epoch ms. */
  choose?: (from: number, to: number) => void
  /** A value as text. */
  format: (value: number) => string
  height?: number
  /** The series stand on top of each other, the first one uppermost. Those of which nothing came are not named. */
  isStacked?: boolean
}

const darkScheme = window.matchMedia('(prefers-color-scheme: dark)')

/** Lines over time; what draws them is loaded with the first one. Drawn again when its size or the colour scheme changes; new values only move the lines. */
export function Plot(props: PlotProps) {
  const { title, summary, times, series, known, format } = props
  const { marks = [], height = 160, isStacked = false } = props
  const frame = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  /** The point under the pointer. */
  const [pointed, point] = useState<number | null>(null)
  const from = knownFrom(times, known)
  // There may be fewer points by now.
  const pointedAt = pointed === null ? undefined : times[pointed]
  const values = series.map((each) => each.values)
  const lines = (isStacked ? stacked(values) : values).map((line) =>
    partsOfLine(times, line, known, Date.now()),
  )
  // What is not over yet is dashed: it comes behind all that is.
  const data = [
    times.map((at) => at / 1_000),
    ...lines.map(({ over }) => over),
    ...lines.map(({ open }) => open),
  ] as uPlot.AlignedData
  const newest = useRef({ data, props })
  newest.current = { data, props }
  const shape = series.map(({ label, color }) => `${label} ${color}`).join()

  useEffect(() => {
    const element = frame.current!
    let isOver = false
    const draw = async () => {
      const { default: Drawn } = await import('uplot')
      if (isOver) return
      plot.current?.destroy()
      const drawn = () => newest.current.props
      plot.current = new Drawn(optionsOf(element, drawn, point, height), newest.current.data, element)
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
  useEffect(() => plot.current?.setData(data), [JSON.stringify([data, marks])])

  return (
    <figure class="plot">
      <div class="plot-head">
        {/* The title keeps its place: nothing moves under the pointer. */}
        <figcaption class={pointedAt === undefined ? '' : 'is-covered'}>{title}</figcaption>
        {pointedAt !== undefined && <p>{absoluteText(pointedAt).slice(0, 16)}</p>}
        <ul>
          {series.map(({ label, color, values }) => {
            // In a stack, the names of what did not come would be most of it.
            if (isStacked && !values.some((value) => value)) return null
            const isKnown = pointedAt !== undefined && pointedAt >= (from ?? Infinity)
            const value = isKnown ? values[pointed!] : null
            return (
              <li key={label}>
                <span class="plot-mark" style={{ background: `var(${color})` }} />
                {label}
                <b>{value === null || value === undefined ? '' : format(value)}</b>
              </li>
            )
          })}
        </ul>
      </div>
      <div
        ref={frame}
        role="img"
        aria-label={[
          summary,
          ...(from === null || from > times[0]!
            ? [`Not known before ${absoluteText(from ?? Date.now()).slice(0, 16)}.`]
            : []),
          ...marks.map(({ at, text }) => `${absoluteText(at).slice(11, 19)}: ${text}.`),
        ].join(' ')}
      />
    </figure>
  )
}

/**
 * @param drawn what it is drawn from, as it is now
 * @param point is told the index of the point under the pointer, null where there is none
 */
function optionsOf(
  element: HTMLElement,
  drawn: () => PlotProps,
  point: (index: number | null) => void,
  height: number,
): uPlot.Options {
  const { series, format, choose, isStacked } = drawn()
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
    height,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: choose !== undefined, y: false, setScale: false }, points: { size: 6 } },
    hooks: {
      drawClear: [(plot) => drawUnknown(plot, drawn(), colorOf('--line-strong'))],
      draw: [(plot) => drawMarks(plot, drawn().marks ?? [], colorOf('--line-strong'))],
      setCursor: [({ cursor }) => point(cursor.idx ?? null)],
      setSelect: [(plot) => chooseSelected(plot, drawn())],
    },
    scales: { y: { range: (_, _low, high) => [0, Math.max(high * 1.1, 4)] } },
    axes: [
      { ...axis, size: 24, space: 64, grid: { show: false }, values: timeValues },
      { ...axis, size: 52, space: 32, values: (_, values) => values.map(format) },
    ],
    series: [
      {},
      ...series.map(({ color }) => ({
        stroke: colorOf(color),
        // Those that follow are drawn over it, and leave the part that is its own.
        ...(isStacked && { fill: colorOf(color) }),
        width: 1.5,
        points: { size: 4 },
      })),
      ...series.map(({ color }) => ({
        stroke: colorOf(color),
        width: 1.5,
        dash: [3, 3],
        // One alone is no line.
        points: {
          size: 4,
          show: (plot: uPlot, index: number) =>
            Array.from<number | null | undefined>(plot.data[index]!).filter((value) => value !== null)
              .length === 1,
        },
      })),
    ],
  }
}

/** Hatched, so that nobody takes it for nothing. */
function drawUnknown({ ctx, bbox, valToPos }: uPlot, { times, known }: PlotProps, color: string): void {
  const { left, top, width, height } = bbox
  const from = knownFrom(times, known)
  const end = from === null ? left + width : Math.min(left + width, valToPos(from / 1_000, 'x', true))
  ctx.save()
  ctx.beginPath()
  ctx.rect(left, top, Math.max(0, end - left), height)
  ctx.clip()
  ctx.strokeStyle = color
  ctx.lineWidth = devicePixelRatio
  ctx.beginPath()
  for (let x = left - height; x < end; x += hatchGap * devicePixelRatio) {
    ctx.moveTo(x, top + height)
    ctx.lineTo(x + height, top)
  }
  ctx.stroke()
  ctx.restore()
}

/** Between two lines of it, in pixels. */
const hatchGap = 7

/** A line across for each. */
function drawMarks({ ctx, bbox, valToPos }: uPlot, marks: readonly PlotMark[], color: string): void {
  ctx.save()
  ctx.strokeStyle = color
  ctx.lineWidth = devicePixelRatio
  ctx.setLineDash([2 * devicePixelRatio, 2 * devicePixelRatio])
  for (const { at } of marks) {
    const x = valToPos(at / 1_000, 'x', true)
    if (x < bbox.left || x > bbox.left + bbox.width) continue
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
  }
  ctx.restore()
}

/** Pixels of a drag that is none but a click. */
const minDrag = 6

function chooseSelected(plot: uPlot, { choose }: PlotProps): void {
  const { left, width } = plot.select
  if (!choose || width < minDrag) return
  const at = (pixel: number) => plot.posToVal(pixel, 'x') * 1_000
  choose(at(left), at(left + width))
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
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
