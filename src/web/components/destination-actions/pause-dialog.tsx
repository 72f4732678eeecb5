import { useState } from 'preact/hooks'
import { request } from '../../api/request.ts'
import { ActionDialog } from '../dialog.tsx'
import { Select } from '../forms/field.tsx'
import { say } from '../toast.tsx'

const lengths = [
  ['30m', '30 minutes'],
  ['2h', '2 hours'],
  ['12h', '12 hours'],
  ['1d', 'a day'],
  ['', 'until somebody resumes it'],
] as const

export function PauseDialog({ id, close }: { id: string; close: () => void }) {
  const [length, setLength] = useState<(typeof lengths)[number][0]>('2h')
  const act = async () => {
    await request('POST /destinations/{id}/pause', { id, body: length === '' ? {} : { for: length } })
    say(`${id} is paused`)
  }
  return (
    <ActionDialog title={`Pause ${id}?`} action={`Pause ${id}`} act={act} close={close}>
      <p>Nothing is sent to it meanwhile. Its calls are held, and sent afterwards, the oldest first.</p>
      <Select label="For how long" value={length} choices={lengths} change={setLength} />
    </ActionDialog>
  )
}
