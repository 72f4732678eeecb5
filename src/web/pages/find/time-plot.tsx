import { stateNames } from '../../components/delivery-state.ts'
import { absoluteText } from '../../components/figures.ts'
import { now } from '../../components/time.tsx'
import {
  namesOf,
  waitText,
  beginsWait,
  receivedAt,
  stepWords,
  type CallDelivery,
  type CallStep,
  type CallCopy,
} from './words.ts'

interface Mark {
  at: number
  shape: 'cross' | 'dot' | 'square' | 'ring'
  tone: 'good' | 'bad' | 'warn' | 'plain'
  text: string
}

interface Lane {
  name: string
  marks: Mark[]
  waits: { from: number; to: number }[]
}

/** What lies below it is drawn evenly, what is longer by its logarithm: a retry waits seconds or hours. */
const evenMs = 100
const ticks: [ms: number, text: string][] = [
  [10, '10 ms'],
  [100, '100 ms'],
  [1_000, '1 s'],
  [10_000, '10 s'],
  [60_000, '1 min'],
  [600_000, '10 min'],
  [3_600_000, '1 h'],
  [21_600_000, '6 h'],
  [86_400_000, '1 d'],
  [604_800_000, '7 d'],
]
const minTickGap = 9
const [height, middle] = [30, 15]

/** When each delivery was tried, and how long it waited between: a lane for each, on one axis. */
export function TimePlot({ copy }: { copy: CallCopy }) {
  const startMs = receivedAt(copy)
  if (startMs === null) return null
  const lanes = lanesOf(copy, startMs).filter(({ marks }) => marks.length > 0)
  if (lanes.length === 0) return null
  const end = Math.max(...lanes.flatMap(({ marks }) => marks.map(({ at }) => at)), startMs + 1)
  const scale = (ms: number) => Math.log1p(Math.max(0, ms) / evenMs)
  /** In percent of the width. */
  const xOf = (at: number) => (100 * scale(at - startMs)) / scale(end - startMs)
  return (
    <section class="section" aria-labelledby="plot-title">
      <div class="section-head">
        <h2 id="plot-title">Over time</h2>
        <p>since it was received, on an axis that shrinks long waits</p>
      </div>
      <div class="time-plot card padded">
        {lanes.map((lane) => (
          <LaneView key={lane.name} lane={lane} xOf={xOf} startMs={startMs} />
        ))}
        <Axis span={end - startMs} xOf={(ms) => xOf(startMs + ms)} />
        <p class="time-plot-key faint" aria-hidden="true">
          <Key shape="cross" tone="bad" text="failed attempt" />
          <Key shape="dot" tone="good" text="delivered" />
          <Key shape="square" tone="bad" text="dead letter" />
          <Key shape="ring" tone="plain" text="sent again, held or due" />
        </p>
      </div>
    </section>
  )
}

function LaneView({ lane, xOf, startMs }: { lane: Lane; xOf: (at: number) => number; startMs: number }) {
  const { name, marks, waits } = lane
  const text = marks.map((mark) => `${mark.text} at ${waitText(mark.at - startMs)}`).join(', ')
  return (
    <div class="time-plot-lane">
      <span class="time-plot-name cut" title={name}>
        {name}
      </span>
      <svg width="100%" height={height} role="img" aria-label={`${name}: ${text}`}>
        <line class="lane-base" x1="0" x2="100%" y1={middle} y2={middle} />
        {waits.map(({ from, to }, index) => (
          <line
            key={index}
            class="lane-wait"
            x1={`${xOf(from)}%`}
            x2={`${xOf(to)}%`}
            y1={middle}
            y2={middle}
          />
        ))}
        {marks.map((mark, index) => (
          <svg key={index} class="lane-mark" x={`${xOf(mark.at)}%`} y={middle}>
            <title>{`${mark.text}, ${absoluteText(mark.at)}`}</title>
            <MarkShape {...mark} />
          </svg>
        ))}
      </svg>
    </div>
  )
}

/** Told apart by shape as well as by colour. */
function MarkShape({ shape, tone }: Pick<Mark, 'shape' | 'tone'>) {
  const kind = `mark mark-${tone}`
  switch (shape) {
    case 'cross':
      return <path class={`${kind} mark-line`} d="M-4-4 4 4M-4 4 4-4" />
    case 'square':
      return <rect class={kind} x={-5} y={-5} width={10} height={10} rx={1.5} />
    case 'ring':
      return <circle class={`${kind} mark-line`} r={4.5} />
    case 'dot':
      return <circle class={kind} r={5} />
  }
}

const Key = ({ text, ...mark }: Pick<Mark, 'shape' | 'tone' | 'text'>) => (
  <span>
    <svg width={14} height={14} viewBox="-7 -7 14 14">
      <MarkShape {...mark} />
    </svg>
    {text}
  </span>
)

function Axis({ span, xOf }: { span: number; xOf: (ms: number) => number }) {
  const shown: { x: number; text: string }[] = [{ x: 0, text: '0' }]
  for (const [ms, text] of ticks) {
    const x = xOf(ms)
    if (ms <= span && x - shown.at(-1)!.x >= minTickGap) shown.push({ x, text })
  }
  return (
    <div class="time-plot-lane" aria-hidden="true">
      <span />
      <svg class="time-plot-axis" width="100%" height={20}>
        {shown.map(({ x, text }) => (
          <text key={text} x={`${x}%`} y={14} text-anchor={x === 0 ? 'start' : x > 94 ? 'end' : 'middle'}>
            {text}
          </text>
        ))}
      </svg>
    </div>
  )
}

function lanesOf(copy: CallCopy, startMs: number): Lane[] {
  const names = namesOf(copy)
  return copy.deliveries.map((delivery) => {
    const steps = copy.steps.filter(({ deliveryId, repeat }) => deliveryId === delivery.deliveryId && !repeat)
    return laneOf(names.get(delivery.deliveryId)!, steps, delivery, startMs)
  })
}

function laneOf(name: string, steps: readonly CallStep[], delivery: CallDelivery, startMs: number): Lane {
  const marks: Mark[] = []
  const waits: Lane['waits'] = []
  let since: number | null = null
  for (const step of steps) {
    const at = Date.parse(step.at)
    if (since !== null) waits.push({ from: since, to: at - (step.durationMs ?? 0) })
    since = beginsWait(step) ? at : null
    const mark = markOf(step)
    if (mark) marks.push({ at, text: stepWords(step).name, ...mark })
  }
  const { state, at, byTally, dueAt } = delivery
  if (byTally && at !== null) {
    const isDelivered = state === 'delivered'
    const to = Date.parse(at)
    marks.push({
      at: to,
      shape: isDelivered ? 'dot' : 'ring',
      tone: isDelivered ? 'good' : state === 'held' ? 'warn' : 'plain',
      text: `${stateNames[state]} by then`,
    })
    waits.push({ from: since ?? startMs, to })
  } else if (state === 'waiting' && dueAt !== null) {
    const to = Math.max(Date.parse(dueAt), since ?? 0)
    marks.push({ at: to, shape: 'ring', tone: 'warn', text: to > now.value ? 'due' : 'was due' })
    if (since !== null) waits.push({ from: since, to })
  }
  return { name, marks, waits }
}

function markOf({ what, outcome }: CallStep): Pick<Mark, 'shape' | 'tone'> | null {
  switch (what) {
    case 'attempt':
      if (outcome === 'success') return { shape: 'dot', tone: 'good' }
      return outcome === 'deferred' ? { shape: 'ring', tone: 'warn' } : { shape: 'cross', tone: 'bad' }
    case 'delivered':
      return { shape: 'dot', tone: 'good' }
    case 'dead_lettered':
      return { shape: 'square', tone: 'bad' }
    case 'held':
      return { shape: 'ring', tone: 'warn' }
    case 'replayed':
    case 'skipped':
    case 'erased':
      return { shape: 'ring', tone: 'plain' }
    default:
      return null
  }
}
