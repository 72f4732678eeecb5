import { useState } from 'preact/hooks'
import { useLive } from '../api/live.ts'
import { request } from '../api/request.ts'
import { ActionDialog } from './dialog.tsx'
import { TextField } from './fields.tsx'
import { countOf } from './figures.ts'
import { say } from './notices.tsx'

/** As far back as the ledger goes. */
const heldWithin = { window: '9d' }

export function ResumeDialog({ id, name, close }: { id: string; name: string; close: () => void }) {
  const live = useLive('GET /destinations/{id}/stats', { id, query: heldWithin }, 0)
  const held = live.data?.pipeline.held ?? null
  const [rate, setRate] = useState('')
  const act = async () => {
    await request('POST /destinations/{id}/resume', { id, body: rate === '' ? {} : { rate: Number(rate) } })
    say(`${name} is resumed`)
  }
  return (
    <ActionDialog title={`Resume ${name}?`} action={`Resume ${name}`} act={act} close={close}>
      {id !== name && (
        <p class="faint">
          <span class="id">{id}</span>
        </p>
      )}
      <p>
        New calls are sent at once, and what was held is replayed beside them, the oldest first
        {held === null || held === 0 ? '.' : <>: {countOf(held, 'call')}.</>}
      </p>
      <TextField label="At most, per second" value={rate} change={setRate} placeholder="no limit" />
    </ActionDialog>
  )
}
