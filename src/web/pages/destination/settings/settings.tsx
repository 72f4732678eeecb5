import { useState } from 'preact/hooks'
import { ApiFailure, request } from '../../../api/request.ts'
import type { DestinationAnswer } from '../../../api/routes.ts'
import { useUnsaved } from '../../../app/address.ts'
import { may } from '../../../app/session.ts'
import { Dialog } from '../../../components/dialog.tsx'
import { countOf } from '../../../components/figures.ts'
import { Failure, say } from '../../../components/notices.tsx'
import { expiryOf } from '../../../../core/settings/certificate-expiry.ts'
import { At } from '../../../components/time.tsx'
import {
  changedFields,
  draftFields,
  draftOf,
  type Draft,
  labelOf,
  shownText,
  type DraftField,
  bodyOf,
  rebased,
} from './draft.ts'
import { FormFields } from './form-fields.tsx'
import { ClientSecretField, LoginsDialog } from './logins.tsx'
import { RequestPreview } from './request-preview.tsx'

export { NewForm } from './new-form.tsx'

export interface SettingsProps {
  destination: DestinationAnswer
  tag: string | null
  rotate: () => void
  reload: () => void
}

/** The settings: as a form for those who may change them. */
export function Settings({ destination, tag, rotate, reload }: SettingsProps) {
  return (
    <>
      {may('admin') ? (
        <Form destination={destination} tag={tag} reload={reload} />
      ) : (
        <Differences fields={draftFields} versions={[['Value', draftOf(destination)]]} />
      )}
      <Secrets destination={destination} tag={tag} rotate={rotate} reload={reload} />
    </>
  )
}

function Form({ destination, tag, reload }: Omit<SettingsProps, 'rotate'>) {
  const { id } = destination
  const [base, setBase] = useState<Version>({ draft: draftOf(destination), tag })
  const [edited, setEdited] = useState<Draft>(base.draft)
  const [isSaving, setSaving] = useState(false)
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  /** What the page still had when a newer version came by a dialog. */
  const [older, setOlder] = useState<string | null>(null)
  const changes = changedFields(base.draft, edited)
  useUnsaved(changes.length === 0 ? null : `What you changed of ${id}`)
  if (older !== null && tag !== older) setOlder(null)
  // While nothing is edited, the form shows what others save.
  if (changes.length === 0 && tag !== base.tag && tag !== older) {
    const version = { draft: draftOf(destination), tag }
    setBase(version)
    setEdited(version.draft)
  }
  const goOn = (version: Version, draftFrom: (edited: Draft) => Draft) => {
    setBase(version)
    setOlder(tag)
    setEdited(draftFrom)
    setFailure(null)
    setSaving(false)
  }
  const known =
    failure?.fields.filter(({ field }) => draftFields.some((each) => field.split('.')[0] === each)) ?? []
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (changes.length > 0) setSaving(true)
      }}
    >
      {failure && known.length < failure.fields.length && <Failure failure={failure} />}
      <FormFields draft={edited} change={(edit) => setEdited({ ...edited, ...edit })} failure={failure} />
      <div class="form-buttons">
        <p role="status" class="faint">
          {changes.length === 0 ? 'Nothing changed' : `${countOf(changes.length, 'setting')} changed`}
        </p>
        <button
          type="button"
          class="button"
          disabled={changes.length === 0}
          onClick={() => {
            setEdited(base.draft)
            setFailure(null)
          }}
        >
          Undo
        </button>
        <button type="submit" class="button button-primary" disabled={changes.length === 0}>
          Review and save
        </button>
      </div>
      {isSaving && (
        <SaveDialog
          id={id}
          base={base}
          edited={edited}
          saved={(version) => {
            // What was typed since, where the dialog was closed before it was answered, is not saved yet.
            goOn(version, (now) => rebased(version.draft, now, changedFields(edited, now)))
            reload()
          }}
          goOn={(version, draft) => goOn(version, () => draft)}
          refused={(refusal) => {
            setFailure(refusal)
            setSaving(false)
          }}
          close={() => setSaving(false)}
        />
      )}
    </form>
  )
}

/** Secrets, certificates and static headers, of which only fingerprints can be seen. */
function Secrets({ destination, tag, rotate, reload }: SettingsProps) {
  const [isEditing, setEditing] = useState(false)
  const { sharedSecret, earlierSecret, clientCert, ca, oauthClientSecret, templateSecrets, urls } =
    destination
  const withHeaders = urls.filter(({ headers }) => headers.length > 0)
  return (
    <section class="section" aria-labelledby="secrets">
      <div class="section-head">
        <h2 id="secrets">Secret, headers and login</h2>
        {may('admin') && (
          <>
            <button type="button" class="button" onClick={rotate}>
              {sharedSecret === null
                ? 'Sign requests …'
                : earlierSecret === null
                  ? 'Rotate the secret …'
                  : 'Remove the earlier secret …'}
            </button>
            <button type="button" class="button" onClick={() => setEditing(true)}>
              Headers and login …
            </button>
          </>
        )}
      </div>
      <dl class="pairs card padded">
        <dt>Secret that signs</dt>
        <dd>
          {sharedSecret ? (
            <span class="id">{sharedSecret.fingerprint}</span>
          ) : (
            'none: requests are not signed'
          )}
        </dd>
        {earlierSecret && (
          <>
            <dt>Earlier one, still active</dt>
            <dd class="id">{earlierSecret.fingerprint}</dd>
          </>
        )}
        <Certificates of={clientCert} label="Client certificate" />
        <Certificates of={ca} label="Own CA" />
        {oauthClientSecret && (
          <>
            <dt>OAuth2 client secret</dt>
            <dd class="id">{oauthClientSecret.fingerprint}</dd>
          </>
        )}
        {templateSecrets.map(({ name, fingerprint }) => (
          <>
            <dt key={name}>
              Secret <span class="id">{name}</span> of templates
            </dt>
            <dd class="id">{fingerprint}</dd>
          </>
        ))}
        {withHeaders.map(({ id, url, headers }) => (
          <>
            <dt key={id}>
              Headers of <span class="id">{url}</span>
            </dt>
            <dd>
              {headers.map(({ name, fingerprint }) => (
                <p key={name}>
                  <span class="id">{name}</span> <span class="id faint">{fingerprint}</span>
                </p>
              ))}
            </dd>
          </>
        ))}
      </dl>
      <p class="hint">Fingerprints stand for values that are encrypted and never shown.</p>
      {isEditing && (
        <LoginsDialog destination={destination} tag={tag} close={() => setEditing(false)} saved={reload} />
      )}
    </section>
  )
}

function Certificates({ of, label }: { of: DestinationAnswer['clientCert']; label: string }) {
  return (
    of && (
      <>
        <dt>{label}</dt>
        {of.certificates.map(({ subject, issuer, fingerprint, expiresAt }) => {
          const expiry = expiryOf(Date.parse(expiresAt), Date.now())
          return (
            <dd key={fingerprint}>
              <p>
                <span class="id">{subject}</span>, issued by <span class="id">{issuer}</span>
              </p>
              <p class={expiry === 'later' ? 'faint' : 'fault'}>
                {expiry === 'expired' ? 'Expired' : 'Expires'} <At at={expiresAt} />
              </p>
            </dd>
          )
        })}
      </>
    )
  )
}

/** Fields of two or three versions, side by side. */
export function Differences({
  fields,
  versions,
}: {
  fields: readonly DraftField[]
  versions: readonly (readonly [head: string, draft: Draft])[]
}) {
  return (
    <div class="table-frame" role="region" aria-label="Differences" tabIndex={0}>
      <table class="differences">
        <thead>
          <tr>
            <th scope="col">Setting</th>
            {versions.map(([head]) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {fields.map((field) => (
            <tr key={field}>
              <th scope="row">{labelOf(field)}</th>
              {versions.map(([head, draft]) => (
                <td key={head} class="id">
                  {shownText(field, draft)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A version that the form began from. */
export interface Version {
  draft: Draft
  /** For If-Match. */
  tag: string | null
}

interface SaveDialogProps {
  id: string
  base: Version
  edited: Draft
  /** It was saved, and is this now. */
  saved: (version: Version) => void
  /** The form goes on from a newer version, with these edits. */
  goOn: (base: Version, edited: Draft) => void
  /** A field is wrong: the form shows which. */
  refused: (failure: ApiFailure) => void
  close: () => void
}

/** Shows what would change before it is saved; and where somebody else was faster, both versions side by side. */
export function SaveDialog({ id, base, edited, saved, goOn, refused, close }: SaveDialogProps) {
  const [theirs, setTheirs] = useState<Version | null>(null)
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const [isSaving, setSaving] = useState(false)
  const [clientSecret, setClientSecret] = useState('')
  const mine = changedFields(base.draft, edited)
  // A client secret is kept for its token URL alone.
  const takesSecret = mine.includes('oauthTokenUrl') && edited.oauthTokenUrl !== ''
  const body = {
    ...bodyOf(edited, mine),
    ...(takesSecret && clientSecret !== '' && { oauthClientSecret: clientSecret }),
  }
  const save = async (event: Event) => {
    event.preventDefault()
    setSaving(true)
    setFailure(null)
    try {
      const headers: Record<string, string> = base.tag === null ? {} : { 'If-Match': base.tag }
      const { data, tag } = await request('PATCH /destinations/{id}', {
        id,
        body,
        headers,
      })
      say(`${id} is saved`)
      saved({ draft: draftOf(data), tag })
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      if (error.fields.some(({ field }) => field === 'If-Match')) await compare()
      else if (error.fields.length > 0) refused(error)
      else setFailure(error)
      setSaving(false)
    }
  }
  const compare = async () => {
    try {
      setTheirs(await newest(id))
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      setFailure(error)
    }
  }
  if (theirs) {
    const fields = [...new Set([...mine, ...changedFields(base.draft, theirs.draft)])]
    return (
      <Dialog title={`${id} was changed meanwhile`} isWide close={close}>
        <p class="faint">Somebody saved it since you opened this form. Nothing of yours is saved yet.</p>
        <Differences
          fields={fields}
          versions={[
            ['When you began', base.draft],
            ['As it is now', theirs.draft],
            ['Yours', edited],
          ]}
        />
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={() => goOn(theirs, theirs.draft)}>
            Drop mine
          </button>
          <button
            type="button"
            class="button button-primary"
            onClick={() => goOn(theirs, rebased(theirs.draft, edited, mine))}
          >
            Put my changes on top
          </button>
        </div>
      </Dialog>
    )
  }
  return (
    <Dialog title={`Save ${id}?`} isWide close={close}>
      <form onSubmit={save}>
        <Differences
          fields={mine}
          versions={[
            ['Now', base.draft],
            ['After saving', edited],
          ]}
        />
        {takesSecret && (
          <ClientSecretField
            value={clientSecret}
            change={setClientSecret}
            hint="For the new token URL. Kept encrypted and never shown again."
          />
        )}
        <RequestPreview id={id} body={bodyOf(edited, mine)} />
        {failure && <Failure failure={failure} />}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={close}>
            Back
          </button>
          <button type="submit" class="button button-primary" disabled={isSaving}>
            {isSaving ? 'Saving …' : `Save ${id}`}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

async function newest(id: string): Promise<Version> {
  const { data, tag } = await request('GET /destinations/{id}', { id })
  return { draft: draftOf(data satisfies DestinationAnswer), tag }
}
