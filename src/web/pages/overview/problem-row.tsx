import type { ComponentChildren } from 'preact'

/** One thing that needs somebody: its state, what it is, and the buttons that act. */
export function Row({
  badge,
  title,
  text,
  children,
}: {
  badge: ComponentChildren
  title: ComponentChildren
  text?: ComponentChildren
  children?: ComponentChildren
}) {
  return (
    <>
      <div class="problem-state">{badge}</div>
      <div class="problem-text">
        <p class="problem-title foreign">{title}</p>
        {text && <div class="faint">{text}</div>}
        {text === undefined && <div class="faint">{children}</div>}
      </div>
      {text !== undefined && <div class="problem-actions">{children}</div>}
    </>
  )
}
