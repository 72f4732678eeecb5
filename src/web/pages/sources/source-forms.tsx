import { useState } from 'preact/hooks'
import { useLive } from '../../api/live.ts'
import { request } from '../../api/request.ts'
import type { SourceAnswer } from '../../api/routes.ts'
import { ActionDialog, Dialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/forms/field.tsx'
import { IdField } from '../../components/forms/id-field.tsx'
import { Failure } from '../../components/notices.tsx'

interface FormProps {
  close: () => void
  done: (text: string) => void
}

const quotaHint = 'Calls that each collector takes of it: 200/s or 600/m. Empty: no quota.'

export function NewSource({ close, done }: FormProps) {
  const [id, setId] = useState('')
  const [name, setName] = useState('')
  const [maxRate, setMaxRate] = useState('')
  const create = async () => {
    await request('POST /sources', { body: { id, name: name || id, maxRate: maxRate || null } })
    done(`Source ${id} is there; its write key is in the list`)
  }
  return (
    <ActionDialog title="New source" action="Create source" close={close} act={create}>
      <IdField value={id} change={setId} />
      <TextField label="Name" value={name} change={setName} hint="For people. Empty: the id." />
      <TextField label="Quota" value={maxRate} change={setMaxRate} hint={quotaHint} />
    </ActionDialog>
  )
}

/** Reads the source first, so that what somebody else changes meanwhile is not overwritten. */
export function ChangeSource({ id, ...rest }: FormProps & { id: string }) {
  const live = useLive('GET /sources/{id}', { id }, 0)
  if (live.data === null)
    return live.failure ? (
      <Dialog title={`Change ${id}`} close={rest.close}>
        <Failure failure={live.failure} />
      </Dialog>
    ) : null
  return <ChangeForm source={live.data} tag={live.tag} {...rest} />
}

function ChangeForm({ source, tag, close, done }: FormProps & { source: SourceAnswer; tag: string | null }) {
  const { id } = source
  const [name, setName] = useState(source.name)
  const [maxRate, setMaxRate] = useState(source.maxRate ?? '')
  const [writeKey, setWriteKey] = useState('')
  const wantedRate = maxRate.trim() || null
  const changes = {
    ...(name !== source.name && { name }),
    ...(wantedRate !== source.maxRate && { maxRate: wantedRate }),
    ...(writeKey !== '' && { writeKey }),
  }
  const save = async () => {
    const headers: Record<string, string> = tag === null ? {} : { 'If-Match': tag }
    if (Object.keys(changes).length > 0) await request('PATCH /sources/{id}', { id, body: changes, headers })
    done(`Source ${id} is changed`)
  }
  return (
    <ActionDialog title={`Change source “${source.name}”`} action="Save" close={close} act={save}>
      <TextField label="Name" value={name} change={setName} autofocus />
      <TextField label="Quota" value={maxRate} change={setMaxRate} hint={quotaHint} />
      <TextField
        label="New write key"
        value={writeKey}
        change={setWriteKey}
        hint="Empty: it stays. A new one stops the old one at once: change it in the applications too."
      />
    </ActionDialog>
  )
}
