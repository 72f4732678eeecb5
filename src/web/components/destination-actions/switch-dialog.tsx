import { request } from '../../api/request.ts'
import { ActionDialog } from '../dialog.tsx'
import { say } from '../toast.tsx'

/** Disables a destination, or enables it. */
export function SwitchDialog({
  id,
  isEnabled,
  close,
}: {
  id: string
  isEnabled: boolean
  close: () => void
}) {
  const turn = isEnabled ? 'disable' : 'enable'
  const act = async () => {
    await request(`POST /destinations/{id}/${turn}`, { id })
    say(`${id} is ${turn}d`)
  }
  const title = isEnabled ? `Disable ${id}?` : `Enable ${id}?`
  return (
    <ActionDialog
      title={title}
      action={`${isEnabled ? 'Disable' : 'Enable'} ${id}`}
      isDestructive={isEnabled}
      act={act}
      close={close}
    >
      <p>
        {isEnabled
          ? 'Its calls are skipped from now on, and so are retries that wait. To hold them for later, pause it instead.'
          : 'New calls are sent to it again. What was skipped meanwhile can be replayed.'}
      </p>
    </ActionDialog>
  )
}
