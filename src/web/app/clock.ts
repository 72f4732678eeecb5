import { signal } from '@preact/signals'

/** Epoch ms, as relative times show it. */
export const now = signal(Date.now())

const tickMs = 1_000

export function runClock(): void {
  window.setInterval(() => {
    if (document.visibilityState === 'visible') now.value = Date.now()
  }, tickMs)
}
