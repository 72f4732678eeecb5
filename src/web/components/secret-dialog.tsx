import { useState } from 'preact/hooks'
import { request } from '../api/request.ts'
import type { DestinationAnswer } from '../api/routes.ts'
import { ActionDialog } from './dialog.tsx'
import { TextField } from './fields.tsx'
import { say } from './notices.tsx'
import { newSecret } from './random.ts'
import { CopyButton } from './text.tsx'

interface SecretDialogProps {
  destination: DestinationAnswer
  /** For If-Match. */
  tag: string | null
  close: () => void
}

/**
 * Rotates the shared secret in two steps: a new one signs beside the one before, until receivers know it; then the
 * earlier one is taken away.
 */
export function SecretDialog({ destination, tag, close }: SecretDialogProps) {
  const { earlierSecret } = destination
  return earlierSecret ? (
    <RemoveEarlier
      id={destination.id}
      name={destination.name}
      fingerprint={earlierSecret.fingerprint}
      close={close}
    />
  ) : (
    <AddSecret destination={destination} tag={tag} close={close} />
  )
}

function AddSecret({ destination: { id, name, sharedSecret }, tag, close }: SecretDialogProps) {
  const [secret, setSecret] = useState(newSecret)
  const act = async () => {
    const body = sharedSecret ? { addSecret: secret } : { sharedSecret: secret }
    // Where there was none, one that somebody else has set meanwhile is not replaced.
    const headers: Record<string, string> = sharedSecret || tag === null ? {} : { 'If-Match': tag }
    await request('PATCH /destinations/{id}', { id, body, headers })
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

function RemoveEarlier({
  id,
  name,
  fingerprint,
  close,
}: { id: string; name: string; close: () => void } & { fingerprint: string }) {
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
