import { request } from '../../api/request.ts'
import { ActionDialog } from '../dialog.tsx'
import { say } from '../toast.tsx'

export function ResumeDialog({ id, close }: { id: string; close: () => void }) {
  const act = async () => {
    await request('POST /destinations/{id}/resume', { id })
    say(`${id} is resumed`)
  }
  return (
    <ActionDialog title={`Resume ${id}?`} action={`Resume ${id}`} act={act} close={close}>
      <p>New calls are sent at once, and what was held is replayed beside them, the oldest first.</p>
    </ActionDialog>
  )
}
