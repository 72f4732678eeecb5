import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

/** The head of a page. Takes the focus when its page is gone to, so that screen readers read it and Tab goes on from there. */
export function PageTitle({
  title,
  above,
  beside,
  children,
}: {
  title: string
  /** Where the page belongs to: a link. */
  above?: ComponentChildren
  /** Beside the title: a state. */
  beside?: ComponentChildren
  /** Actions, at the right. */
  children?: ComponentChildren
}) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · Postrider`
  }, [title])
  useEffect(() => {
    if (document.activeElement === document.body) heading.current!.focus({ preventScroll: true })
  }, [])
  return (
    <header class="page-title">
      <div>
        {above && <p class="above">{above}</p>}
        <div class="title-line">
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {beside}
        </div>
      </div>
      {children && <div class="actions">{children}</div>}
    </header>
  )
}
