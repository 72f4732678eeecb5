import { useState } from 'preact/hooks'
import { request } from '../api/request.ts'
import type { SampleAnswer, DestinationAnswer } from '../api/routes.ts'
import { ActionDialog } from './dialog.tsx'
import { Select, TextField } from './fields.tsx'
import { say } from './notices.tsx'
import { newSecret } from './random.ts'
import { CopyButton } from './text.tsx'

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

/** As it went out, without the values of static headers. */
export const requestText = ({
  method,
  url,
  headers,
  body,
}: SampleAnswer['data'][number]['request']): string =>
  [`${method} ${url}`, ...headers.map(({ name, value }) => `${name}: ${value}`), '', body].join('\n')

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

/**
 * Rotates the shared secret in two steps: a new one signs beside the one before, until receivers know it; then the
 * earlier one is taken away.
 */
export function SecretDialog({ destination, close }: { destination: DestinationAnswer; close: () => void }) {
  const { earlierSecret } = destination
  return earlierSecret ? (
    <RemoveEarlier id={destination.id} fingerprint={earlierSecret.fingerprint} close={close} />
  ) : (
    <AddSecret destination={destination} close={close} />
  )
}

function AddSecret({
  destination: { id, sharedSecret },
  close,
}: {
  destination: DestinationAnswer
  close: () => void
}) {
  const [secret, setSecret] = useState(newSecret)
  const act = async () => {
    const body = sharedSecret ? { addSecret: secret } : { sharedSecret: secret }
    await request('PATCH /destinations/{id}', { id, body })
    say(`${id} has a new secret`)
  }
  const title = sharedSecret ? `Rotate the secret of ${id}?` : `Sign the requests to ${id}?`
  return (
    <ActionDialog
      title={title}
      action={sharedSecret ? `Rotate the secret of ${id}` : `Sign for ${id}`}
      act={act}
      close={close}
    >
      <p>
        {sharedSecret
          ? 'The new secret signs X-Signature at once; the one before stays active beside it until you remove it. Give the new one to the receiver first: it is never shown again.'
          : 'Requests carry a signature from now on. Give the secret to the receiver: it is never shown again.'}
      </p>
      <div class="with-button">
        <TextField
          label="New secret"
          value={secret}
          change={setSecret}
          hint="1-256 bytes. Made at random; another can be given."
        />
        <CopyButton text={secret} what="the secret" />
      </div>
    </ActionDialog>
  )
}

function RemoveEarlier({ id, fingerprint, close }: { id: string; fingerprint: string; close: () => void }) {
  const act = async () => {
    await request('PATCH /destinations/{id}', { id, body: { removeSecrets: [fingerprint] } })
    say(`The earlier secret of ${id} is removed`)
  }
  return (
    <ActionDialog
      title={`Remove the earlier secret of ${id}?`}
      action={`Remove the secret of ${id}`}
      isDestructive
      act={act}
      close={close}
    >
      <p>
        Two secrets are active: the newest, and the one before it (<span class="id">{fingerprint}</span>).
        Remove it once the receiver checks by the newest. After that the next one can be added.
      </p>
    </ActionDialog>
  )
}
