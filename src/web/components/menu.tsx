import type { ComponentChildren } from 'preact'
import { useId, useRef } from 'preact/hooks'
import { Icon } from './icon.tsx'

/** Buttons that are not needed often, behind one. Escape, a click elsewhere and each of them close it. */
export function Menu({ children }: { children: ComponentChildren }) {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const items = useRef<HTMLDivElement>(null)
  /** It lies above all else in the page's own coordinates: it scrolls with its button, and nothing cuts it. */
  const place = () => {
    const { left, right, bottom } = button.current!.getBoundingClientRect()
    const { clientWidth } = document.documentElement
    const isAtRight = left + right > clientWidth
    Object.assign(items.current!.style, {
      top: `${bottom + scrollY + 4}px`,
      left: isAtRight ? 'auto' : `${left}px`,
      right: isAtRight ? `${clientWidth - right}px` : 'auto',
    })
  }
  return (
    <>
      <button
        ref={button}
        type="button"
        class="icon-button"
        aria-label="More actions"
        title="More actions"
        popovertarget={id}
      >
        <Icon name="more" />
      </button>
      <div
        ref={items}
        id={id}
        class="menu"
        popover="auto"
        onBeforeToggle={place}
        onClick={() => items.current!.hidePopover()}
      >
        {children}
      </div>
    </>
  )
}
