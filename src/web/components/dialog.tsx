import type { ComponentChildren } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { ApiFailure } from '../api/request.ts'
import { Failure, say, sentence } from './notices.tsx'

/** A modal dialog: the browser keeps the focus in it, gives it back afterwards, and closes it by Escape. */
export function Dialog({
  title,
  isWide = false,
  close,
  children,
}: {
  title: string
  isWide?: boolean
  close: () => void
  children: ComponentChildren
}) {
  const element = useRef<HTMLDialogElement>(null)
  const isOver = useRef(false)
  const titleId = useId()
  // Not after the next frame: until then nothing would have the focus, and whoever types on would type to nobody.
  useLayoutEffect(() => {
    const dialog = element.current!
    const before = document.activeElement
    dialog.showModal()
    return () => {
      isOver.current = true
      dialog.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      class={isWide ? 'dialog dialog-wide' : 'dialog'}
      aria-labelledby={titleId}
      onCancel={close}
      // A browser says so a while later: by then another dialog may be open in its place.
      onClose={() => isOver.current || close()}
    >
      <h2 id={titleId}>{title}</h2>
      {children}
    </dialog>
  )
}

interface ActionDialogProps {
  /** Names what it is about: `Disable "crm"?`. */
  title: string
  /** Of the button: `Disable crm`. */
  action: string
  isDestructive?: boolean
  /** False while something is missing that it takes. */
  isPossible?: boolean
  /** Rejects with ApiFailure, which is shown in the dialog, or as a message where that was closed meanwhile. */
  act: (isOpen: () => boolean) => Promise<void>
  close: () => void
  children?: ComponentChildren
}

/** Asks once, by name, before something is done; shows why it could not be done. */
export function ActionDialog({
  title,
  action,
  isDestructive = false,
  isPossible = true,
  act,
  close,
  children,
}: ActionDialogProps) {
  const [isActing, setActing] = useState(false)
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const isOpen = useRef(true)
  useEffect(() => () => void (isOpen.current = false), [])
  const submit = async (event: Event) => {
    event.preventDefault()
    setActing(true)
    setFailure(null)
    try {
      await act(() => isOpen.current)
      // Another dialog may be open in its place.
      if (isOpen.current) close()
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      if (!isOpen.current) return say(`${action}: ${sentence(error.message)}`, 'bad')
      setFailure(error)
      setActing(false)
    }
  }
  return (
    <Dialog title={title} close={close}>
      <form onSubmit={submit}>
        {children}
        {failure && <Failure failure={failure} />}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button
            type="submit"
            class={`button button-${isDestructive ? 'danger' : 'primary'}`}
            disabled={isActing || !isPossible}
          >
            {isActing ? 'Working …' : action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
