import type { ComponentChildren } from 'preact'
import type { ApiFailure } from '../api/request.ts'
import { relativeText } from './figures.ts'
import { Icon } from './icon.tsx'
import { now } from '../app/clock.ts'

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
          What you see was read {relativeText(loadedAt, now.value)}. {sentence(failure.message)}
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
