import { countText } from './figures.ts'

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
