import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'

/** A section that is made when somebody opens it: it is long, or has to be asked for. */
export function Folded({
  title,
  hint,
  children,
}: {
  title: string
  hint: string
  children: ComponentChildren
}) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details class="section part" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h2>{title}</h2>
        <span class="faint">{hint}</span>
      </summary>
      {isOpen && children}
    </details>
  )
}
