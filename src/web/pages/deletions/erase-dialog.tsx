import { useRef, useState } from 'preact/hooks'
import { pathTo } from '../../../console/page-paths.ts'
import { go } from '../../app/address.ts'
import { requestWithProgress } from '../../api/request.ts'
import type { DeletionProgressLine } from '../../api/routes.ts'
import { ActionDialog } from '../../components/dialog.tsx'
import { countOf } from '../../components/figures.ts'
import { Checkbox } from '../../components/forms/field.tsx'
import { Progress } from '../../components/progress.tsx'
import { say } from '../../components/toast.tsx'
import { randomKey, UserFields, useUsers } from './user-fields.tsx'

/** Asks which users, and at which sources; goes to the request's own page. */
export function EraseDialog({ close }: { close: () => void }) {
  const users = useUsers()
  const [isSuppressing, setSuppressing] = useState(false)
  const [progress, setProgress] = useState<DeletionProgressLine | null>(null)
  // The same for each try: what was written by one whose answer was lost is not written again.
  const key = useRef(randomKey())
  const erase = async () => {
    const headers = { 'Idempotency-Key': key.current }
    const { ids, sourceIds } = users
    let id: string
    if (isSuppressing) {
      const body = {
        regulationType: 'SUPPRESS_WITH_DELETE',
        subjectIds: ids,
        ...(sourceIds && { sourceIds }),
      }
      id = (await requestWithProgress('POST /regulations', { body, headers }, setProgress)).deletion!.id
    } else {
      const body = { userIds: ids, ...(sourceIds && { sourceIds }) }
      id = (await requestWithProgress('POST /deletions', { body, headers }, setProgress)).id
    }
    say(`${countOf(ids.length, 'user')} erased; the delete calls are on their way`)
    go(pathTo('deletion', { id }))
  }
  return (
    <ActionDialog
      title="Erase users"
      action={users.ids.length === 0 ? 'Erase' : `Erase ${countOf(users.ids.length, 'user')}`}
      isDestructive
      act={erase}
      close={close}
    >
      <p>
        What waits of their calls is dropped, their dead letters are gone, and each enabled destination gets a
        delete call for each user. This cannot be undone.
      </p>
      <UserFields users={users} />
      <Checkbox
        label="Suppress them too"
        hint="Takes and delivers no further calls of them, until that is ended."
        checked={isSuppressing}
        change={setSuppressing}
      />
      {progress && (
        <Progress
          label={progress.phase === 'erasing' ? 'Users erased' : 'Delete calls written'}
          done={progress.done}
          total={progress.total}
        />
      )}
    </ActionDialog>
  )
}
