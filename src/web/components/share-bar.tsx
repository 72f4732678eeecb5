import type { ComponentChildren } from 'preact'
import { countText, percentText } from './figures.ts'
import { NotKnown } from './notices.tsx'

export interface Share {
  name: string
  /** Null where it is not known. */
  count: number | null
  /** Why it is not. */
  why?: string
  tone: 'good' | 'warn' | 'bad' | 'plain'
  note?: ComponentChildren
  /** Where each of it is listed. */
  href?: string
}

/** One bar of parts that add up. */
export function Bar({ parts }: { parts: readonly Pick<Share, 'name' | 'count' | 'tone'>[] }) {
  const total = totalOf(parts)
  let from = 0
  return (
    <svg class="share-bar" viewBox="0 0 1000 12" preserveAspectRatio="none" aria-hidden="true">
      <rect class="bar-track" width="1000" height="12" />
      {parts.map(({ name, count, tone }) => {
        if (!count) return null
        // What is there can be seen, however little it is.
        const width = Math.max(3, (count / total) * 1_000)
        const x = Math.min(from, 1_000 - width)
        from = x + width
        return <rect key={name} class={`share share-${tone}`} x={x} width={width} height="12" />
      })}
    </svg>
  )
}

export const totalOf = (parts: readonly Pick<Share, 'count'>[]): number =>
  parts.reduce((sum, { count }) => sum + (count ?? 0), 0)

export const Mark = ({ tone }: Pick<Share, 'tone'>) => (
  <span class={`share-mark share-${tone}`} aria-hidden="true" />
)

/** The bar, and below it what each part is. */
export function ShareBar({ label, parts }: { label: string; parts: readonly Share[] }) {
  const total = totalOf(parts)
  return (
    <>
      <Bar parts={parts} />
      <ul class="shares" aria-label={label}>
        {parts.map(({ name, count, why, tone, note, href }) => (
          <li key={name} class={count === 0 ? 'is-none' : ''}>
            <Mark tone={tone} />
            <div>
              <p class="share-name">{href !== undefined && count ? <a href={href}>{name}</a> : name}</p>
              <p class={tone === 'bad' && count ? 'path-count is-bad' : 'path-count'}>
                {count === null ? <NotKnown {...(why !== undefined && { why })} /> : countText(count)}
              </p>
              <p class="path-note">
                {count !== null && total > 0 && percentText(count / total)}
                {count ? note : null}
              </p>
            </div>
          </li>
        ))}
      </ul>
    </>
  )
}
