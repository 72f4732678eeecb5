import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { away } from '../api/away.ts'
import type { ApiFailure } from '../api/request.ts'
import { relativeText, countText } from './figures.ts'
import { Icon } from './icon.tsx'
import { now } from './time.tsx'

/** A number that is not known, with why. */
export function NotKnown({ why }: { why?: string }) {
  return (
    <span class="faint" title={why}>
      not known
    </span>
  )
}

/** There is nothing to compute a number from. */
export function NoValue({ why }: { why: string }) {
  return (
    <span class="faint" title={why}>
      <span aria-hidden="true">–</span>
      <span class="hidden">{why}</span>
    </span>
  )
}

/** Nothing is there: says so, and what to do next. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  )
}

/** What went wrong, with what still can be done. */
export function Failure({ failure, retry }: { failure: ApiFailure; retry?: () => void }) {
  return (
    <div class="notice notice-bad" role="alert">
      <Icon name="warning" />
      <div>
        <p>{sentence(failure.message)}</p>
        {retry && (
          <button type="button" class="button" onClick={retry}>
            Try again
          </button>
        )}
      </div>
    </div>
  )
}

/** Something that a reader should know about what is shown. */
export function Note({ tone = 'plain', children }: { tone?: 'plain' | 'warn'; children: ComponentChildren }) {
  return (
    <div class={`notice notice-${tone}`}>
      <div>{children}</div>
    </div>
  )
}

/** What is shown is old, because asking again fails. */
export function Stale({ failure, loadedAt }: { failure: ApiFailure | null; loadedAt: number | null }) {
  if (!failure || loadedAt === null) return null
  return (
    <div class="notice notice-warn" role="status">
      <Icon name="warning" />
      <div>
        <p>
          What you see was read {relativeText(loadedAt, now.value)}.{' '}
          {/* On top of the page it is said for all of it. */}
          {away.value === null && sentence(failure.message)}
        </p>
      </div>
    </div>
  )
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      Loading {what} …
    </p>
  )
}

/** The API's messages begin in small letters and have no full stop. */
export const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? '' : '.'}`

interface ToastMessage {
  id: number
  text: string
  tone: 'good' | 'bad'
}

const shownMs = 6_000
const toasts = signal<readonly ToastMessage[]>([])
let count = 0

/** Says for a while what was done, or that it was not; screen readers read it out. */
export function say(text: string, tone: ToastMessage['tone'] = 'good'): void {
  const id = ++count
  toasts.value = [...toasts.value, { id, text, tone }].slice(-3)
  // A failure stays until it is closed.
  if (tone === 'good') window.setTimeout(() => close(id), shownMs)
}

const close = (id: number) => void (toasts.value = toasts.value.filter((each) => each.id !== id))

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, tone }) => (
        <div key={id} class={`toast toast-${tone}`}>
          <Icon name={tone === 'good' ? 'check' : 'warning'} />
          <span>{text}</span>
          <button type="button" class="icon-button" aria-label="Close message" onClick={() => close(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  )
}

/** How far long work is; without a total, only what is done. */
export function Progress({ label, done, total }: { label: string; done: number; total: number | null }) {
  const text = total === null ? countText(done) : `${countText(done)} of ${countText(total)}`
  return (
    <div class="progress">
      <span class="progress-label">
        {label}: {text}
      </span>
      <progress aria-label={label} max={total ?? 1} {...(total !== null && { value: done })} />
    </div>
  )
}
