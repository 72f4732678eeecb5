import { useState } from 'preact/hooks'
import { useLive } from '../api/live.ts'
import { request } from '../api/request.ts'
import type { SampleAnswer, DestinationAnswer } from '../api/routes.ts'
import { ActionDialog } from './dialog.tsx'
import { Select, TextField } from './fields.tsx'
import { countOf } from './figures.ts'
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
  const act = async () => {
    await request('POST /destinations/{id}/resume', { id })
    say(`${name} is resumed`)
  }
  return (
    <ActionDialog title={`Resume ${name}?`} action={`Resume ${name}`} act={act} close={close}>
      <Id id={id} name={name} />
      <p>
        New calls are sent at once, and what was held is replayed beside them, the oldest first
        {held === null || held === 0 ? '.' : <>: {countOf(held, 'call')}.</>}
      </p>
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

/** As it went out, without the values of static headers. */
export const requestText = ({
  method,
  url,
  headers,
  body,
}: SampleAnswer['data'][number]['request']): string =>
  [`${method} ${url}`, ...headers.map(({ name, value }) => `${name}: ${value}`), '', body].join('\n')

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

/**
 * Rotates the shared secret in two steps: a new one signs beside the one before, until receivers know it; then the
 * earlier one is taken away.
 */
export function SecretDialog({ destination, close }: { destination: DestinationAnswer; close: () => void }) {
  const { earlierSecret } = destination
  return earlierSecret ? (
    <RemoveEarlier
      id={destination.id}
      name={destination.name}
      fingerprint={earlierSecret.fingerprint}
      close={close}
    />
  ) : (
    <AddSecret destination={destination} close={close} />
  )
}

function AddSecret({
  destination: { id, name, sharedSecret },
  close,
}: {
  destination: DestinationAnswer
  close: () => void
}) {
  const [secret, setSecret] = useState(newSecret)
  const act = async () => {
    const body = sharedSecret ? { addSecret: secret } : { sharedSecret: secret }
    await request('PATCH /destinations/{id}', { id, body })
    say(`${name} has a new secret`)
  }
  const title = sharedSecret ? `Rotate the secret of ${name}?` : `Sign the requests to ${name}?`
  return (
    <ActionDialog
      title={title}
      action={sharedSecret ? `Rotate the secret of ${name}` : `Sign for ${name}`}
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

function RemoveEarlier({ id, name, fingerprint, close }: OfDestination & { fingerprint: string }) {
  const act = async () => {
    await request('PATCH /destinations/{id}', { id, body: { removeSecrets: [fingerprint] } })
    say(`The earlier secret of ${name} is removed`)
  }
  return (
    <ActionDialog
      title={`Remove the earlier secret of ${name}?`}
      action={`Remove the secret of ${name}`}
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
