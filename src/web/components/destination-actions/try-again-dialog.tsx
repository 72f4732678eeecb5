import { request } from '../../api/request.ts'
import { ActionDialog } from '../dialog.tsx'
import { say } from '../toast.tsx'

/** For a destination whose URLs answered 410. */
export function TryAgainDialog({ id, close }: { id: string; close: () => void }) {
  const act = async () => {
    await request('POST /destinations/{id}/enable', { id })
    say(`Calls are sent to ${id} again`)
  }
  return (
    <ActionDialog title={`Send to ${id} again?`} action={`Send to ${id}`} act={act} close={close}>
      <p>
        Its URLs answered 410 (Gone), so nothing was sent to them any more. They are tried again with the next
        call.
      </p>
    </ActionDialog>
  )
}
