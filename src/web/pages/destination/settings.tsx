import { useState } from 'preact/hooks'
import { may } from '../../app/session.ts'
import type { ApiFailure } from '../../api/request.ts'
import type { DestinationAnswer } from '../../api/routes.ts'
import { countOf } from '../../components/figures.ts'
import { Failure } from '../../components/notices.tsx'
import { Differences } from './settings/differences.tsx'
import { changedFields, draftFields, draftOf, type Draft } from './settings/draft.ts'
import { FormFields } from './settings/form-fields.tsx'
import { SaveDialog, type Version } from './settings/save-dialog.tsx'

interface SettingsProps {
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
      <Secrets destination={destination} rotate={rotate} />
    </>
  )
}

function Form({ destination, tag, reload }: Omit<SettingsProps, 'rotate'>) {
  const { id } = destination
  const [base, setBase] = useState<Version>({ draft: draftOf(destination), tag })
  const [edited, setEdited] = useState<Draft>(base.draft)
  const [isSaving, setSaving] = useState(false)
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const changes = changedFields(base.draft, edited)
  // While nothing is edited, the form shows what others save.
  if (changes.length === 0 && tag !== base.tag) {
    const version = { draft: draftOf(destination), tag }
    setBase(version)
    setEdited(version.draft)
  }
  const goOn = (version: Version, draft: Draft) => {
    setBase(version)
    setEdited(draft)
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
          onClick={() => goOn(base, base.draft)}
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
            goOn(version, version.draft)
            reload()
          }}
          goOn={goOn}
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

/** Secrets and static headers, of which only fingerprints can be seen. */
function Secrets({ destination, rotate }: Pick<SettingsProps, 'destination' | 'rotate'>) {
  const { sharedSecret, earlierSecret, urls } = destination
  const withHeaders = urls.filter(({ headers }) => headers.length > 0)
  return (
    <section class="section" aria-labelledby="secrets">
      <div class="section-head">
        <h2 id="secrets">Secret and headers</h2>
        {may('admin') && (
          <button type="button" class="button" onClick={rotate}>
            {sharedSecret === null
              ? 'Sign requests …'
              : earlierSecret === null
                ? 'Rotate the secret …'
                : 'Remove the earlier secret …'}
          </button>
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
      <p class="hint">
        Fingerprints stand for values that are encrypted and never shown. Headers are changed with{' '}
        <code>postrider destinations update</code>.
      </p>
    </section>
  )
}
