import type { RefObject } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

/**
 * For a list that is read again by itself and may then stand in another order: a row that a browser moves loses the focus,
 * and whoever works by keyboard the place.
 */
export function useKeptFocus<T extends HTMLElement>(): RefObject<T | null> {
  const list = useRef<T>(null)
  const { activeElement } = document
  const focused = list.current?.contains(activeElement) ? activeElement : null
  useLayoutEffect(() => {
    if (focused instanceof HTMLElement && focused.isConnected && document.activeElement !== focused)
      focused.focus({ preventScroll: true })
  })
  return list
}
