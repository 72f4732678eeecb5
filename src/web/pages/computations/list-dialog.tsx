import { useState } from 'preact/hooks'
import { requestWithProgress } from '../../api/request.ts'
import type { SyncProgressLine } from '../../api/routes.ts'
import { ActionDialog } from '../../components/dialog.tsx'
import { countText } from '../../components/figures.ts'
import { Checkbox, TextArea } from '../../components/forms/field.tsx'
import { Progress } from '../../components/progress.tsx'
import { say } from '../../components/toast.tsx'
import type { Kind } from './kinds.ts'
import { linesOfIds } from './user-lines.ts'

interface ListDialogProps {
  kind: Kind
  id: string
  mode: 'sync' | 'change'
  close: () => void
  done: () => void
}

/** Gives the whole list, or changes; from a file or as text. */
export function ListDialog({ kind, id, mode, close, done }: ListDialogProps) {
  const [text, setText] = useState('')
  const [removed, setRemoved] = useState('')
  const [file, setFile] = useState<File | null>(null)
  const [allowEmpty, setAllowEmpty] = useState(false)
  const [progress, setProgress] = useState<SyncProgressLine | null>(null)
  const isAudience = kind.page === 'audience'
  const isChange = mode === 'change'

  const send = async () => {
    const added = file === null ? linesOfIds(text) : await linesOfFile(file)
    const lines = isAudience && isChange ? new Blob([added, linesOfIds(removed, false)]) : added
    const asked = { id, lines, query: isChange ? {} : { allowEmpty } }
    const report = await requestWithProgress(kind[mode], asked, setProgress)
    const { given, entered, left } = report
    say(`${id}: ${countText(given)} given, ${countText(entered)} entered, ${countText(left)} left`)
    done()
  }
  const title = isChange ? `Change some users of ${id}` : `The whole list of ${id}`
  return (
    <ActionDialog title={title} action={isChange ? 'Send changes' : 'Send the list'} close={close} act={send}>
      <p>
        {isChange
          ? 'Users who are not named stay as they are.'
          : 'Users who are not in the list leave. Destinations are notified of what changed since the last time.'}
      </p>
      <TextArea
        label={isAudience ? (isChange ? 'Users who enter' : 'Members') : 'Values'}
        hint={
          isAudience
            ? 'A user id a line, or JSON lines.'
            : 'A JSON object a line: {"userId":"u-1","value":3}. The value null takes it away.'
        }
        rows={6}
        value={text}
        change={setText}
      />
      <div class="field">
        <label for="list-file">Or a file of such lines</label>
        <input
          id="list-file"
          type="file"
          accept=".txt,.csv,.json,.jsonl,.ndjson"
          onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)}
        />
      </div>
      {isAudience && isChange && (
        <TextArea
          label="Users who leave"
          hint="A user id a line."
          rows={3}
          value={removed}
          change={setRemoved}
        />
      )}
      {!isChange && (
        <Checkbox
          label="Take an empty list"
          hint="Everybody leaves. Unless checked, an empty list is refused."
          checked={allowEmpty}
          change={setAllowEmpty}
        />
      )}
      {progress && (
        <Progress
          label={progress.phase === 'finishing' ? 'Finishing the sync before' : 'Sent'}
          done={progress.done}
          total={progress.total}
        />
      )}
    </ActionDialog>
  )
}

/** Files of JSON lines may be of any size, and are sent as they are. */
async function linesOfFile(file: File): Promise<Blob | string> {
  const isJson = (await file.slice(0, 1).text()) === '{'
  return isJson ? file : linesOfIds(await file.text())
}
