import { signal } from '@preact/signals'
import { Icon } from './icon.tsx'

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
