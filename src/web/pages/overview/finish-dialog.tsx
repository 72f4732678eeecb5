import { requestWithProgress } from '../../api/request.ts'
import type { DeletionAnswer } from '../../api/routes.ts'
import { ActionDialog } from '../../components/dialog.tsx'
import { countOf } from '../../components/figures.ts'
import { say } from '../../components/toast.tsx'

/** Resumes a deletion that was interrupted. */
export function FinishDialog({ deletion: { id }, close }: { deletion: DeletionAnswer; close: () => void }) {
  const act = async () => {
    const { deleteCalls, missing } = await requestWithProgress(
      'POST /deletions/{id}/resume',
      { id },
      () => {},
    )
    say(
      missing > 0
        ? `${countOf(missing, 'user')} of deletion ${id} were never erased: give them again`
        : `Deletion ${id} is finished: ${countOf(deleteCalls, 'delete call')} written`,
      missing > 0 ? 'bad' : 'good',
    )
  }
  return (
    <ActionDialog title={`Finish deletion ${id}?`} action="Write delete calls" act={act} close={close}>
      <p>
        Destinations get the delete calls that are missing. Those that were written before keep their
        messageId.
      </p>
    </ActionDialog>
  )
}
