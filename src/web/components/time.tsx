import { signal } from '@preact/signals'
import { durationText } from '../../core/duration.ts'
import { absoluteText, relativeText } from './figures.ts'

/** How long ago, or in how long; the time itself on hover. What is no time that a calendar has is shown as it came. */
export function Ago({ at }: { at: string | number }) {
  const ms = typeof at === 'number' ? at : Date.parse(at)
  if (Number.isNaN(ms)) return <NoTime text={String(at)} />
  return (
    <time dateTime={new Date(ms).toISOString()} title={absoluteText(ms)}>
      {relativeText(ms, now.value)}
    </time>
  )
}

/** The time itself; how long ago on hover. */
export function At({ at }: { at: string }) {
  const ms = Date.parse(at)
  if (Number.isNaN(ms)) return <NoTime text={at} />
  return (
    <time class="numbers" dateTime={at} title={relativeText(ms, now.value)}>
      {absoluteText(ms)}
    </time>
  )
}

const NoTime = ({ text }: { text: string }) => (
  <span class="numbers" title="No calendar has this time">
    {text}
  </span>
)

/** How long it has been so. */
export function Since({ at }: { at: string }) {
  const ms = Date.parse(at)
  return (
    <time dateTime={at} title={`since ${absoluteText(ms)}`}>
      for {durationText(now.value - ms)}
    </time>
  )
}

/** Epoch ms, as relative times show it. */
export const now = signal(Date.now())

const tickMs = 1_000

export function runClock(): void {
  window.setInterval(() => {
    if (document.visibilityState === 'visible') now.value = Date.now()
  }, tickMs)
}
