import { useState } from 'preact/hooks'
import { useLive } from '../api/live.ts'
import { request } from '../api/request.ts'
import { ActionDialog } from './dialog.tsx'
import { Select, TextField } from './fields.tsx'
import { countOf } from './figures.ts'
import { say } from './notices.tsx'

const lengths = [
  ['30m', '30 minutes'],
  ['2h', '2 hours'],
  ['12h', '12 hours'],
  ['1d', 'a day'],
  ['', 'until somebody resumes it'],
] as const

interface OfDestination {
  id: string
  name: string
  close: () => void
}

/** Where it is not its name. */
const Id = ({ id, name }: { id: string; name: string }) =>
  id === name ? null : (
    <p class="faint">
      <span class="id">{id}</span>
    </p>
  )

export function PauseDialog({ id, name, close }: OfDestination) {
  const [length, setLength] = useState<(typeof lengths)[number][0]>('2h')
  const act = async () => {
    await request('POST /destinations/{id}/pause', { id, body: length === '' ? {} : { for: length } })
    say(`${name} is paused`)
  }
  return (
    <ActionDialog title={`Pause ${name}?`} action={`Pause ${name}`} act={act} close={close}>
      <Id id={id} name={name} />
      <p>Nothing is sent to it meanwhile. Its calls are held, and sent afterwards, the oldest first.</p>
      <Select label="For how long" value={length} choices={lengths} change={setLength} />
    </ActionDialog>
  )
}

/** As far back as the ledger goes. */
const heldWithin = { window: '9d' }

export function ResumeDialog({ id, name, close }: OfDestination) {
  const live = useLive('GET /destinations/{id}/stats', { id, query: heldWithin }, 0)
  const held = live.data?.pipeline.held ?? null
  const [rate, setRate] = useState('')
  const act = async () => {
    await request('POST /destinations/{id}/resume', { id, body: rate === '' ? {} : { rate: Number(rate) } })
    say(`${name} is resumed`)
  }
  return (
    <ActionDialog title={`Resume ${name}?`} action={`Resume ${name}`} act={act} close={close}>
      <Id id={id} name={name} />
      <p>
        New calls are sent at once, and what was held is replayed beside them, the oldest first
        {held === null || held === 0 ? '.' : <>: {countOf(held, 'call')}.</>}
      </p>
      <TextField label="At most, per second" value={rate} change={setRate} placeholder="no limit" />
    </ActionDialog>
  )
}

/** Disables a destination, or enables it. */
export function SwitchDialog({ id, name, isEnabled, close }: OfDestination & { isEnabled: boolean }) {
  const turn = isEnabled ? 'disable' : 'enable'
  const act = async () => {
    await request(`POST /destinations/{id}/${turn}`, { id })
    say(`${name} is ${turn}d`)
  }
  const title = isEnabled ? `Disable ${name}?` : `Enable ${name}?`
  return (
    <ActionDialog
      title={title}
      action={`${isEnabled ? 'Disable' : 'Enable'} ${name}`}
      isDestructive={isEnabled}
      act={act}
      close={close}
    >
      <Id id={id} name={name} />
      <p>
        {isEnabled
          ? 'Its calls are skipped from now on, and so are retries that wait. To hold them for later, pause it instead.'
          : 'New calls are sent to it again. What was skipped meanwhile can be replayed.'}
      </p>
    </ActionDialog>
  )
}

/** For a destination whose URLs answered 410. */
export function TryAgainDialog({ id, name, close }: OfDestination) {
  const act = async () => {
    await request('POST /destinations/{id}/enable', { id })
    say(`Calls are sent to ${name} again`)
  }
  return (
    <ActionDialog title={`Send to ${name} again?`} action={`Send to ${name}`} act={act} close={close}>
      <Id id={id} name={name} />
      <p>
        Its URLs answered 410 (Gone), so nothing was sent to them any more. They are tried again with the next
        call.
      </p>
    </ActionDialog>
  )
}
