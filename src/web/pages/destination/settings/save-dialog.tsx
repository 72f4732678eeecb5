import { useState } from 'preact/hooks'
import { ApiFailure, request } from '../../../api/request.ts'
import type { DestinationAnswer } from '../../../api/routes.ts'
import { Dialog } from '../../../components/dialog.tsx'
import { Failure } from '../../../components/notices.tsx'
import { say } from '../../../components/toast.tsx'
import { Differences } from './differences.tsx'
import { bodyOf, changedFields, draftOf, rebased, type Draft } from './draft.ts'

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
  const mine = changedFields(base.draft, edited)
  const save = async (event: Event) => {
    event.preventDefault()
    setSaving(true)
    setFailure(null)
    try {
      const headers: Record<string, string> = base.tag === null ? {} : { 'If-Match': base.tag }
      const { data, tag } = await request('PATCH /destinations/{id}', {
        id,
        body: bodyOf(edited, mine),
        headers,
      })
      say(`${id} is saved`)
      saved({ draft: draftOf(data), tag })
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      if (error.fields.some(({ field }) => field === 'If-Match')) setTheirs(await newest(id))
      else if (error.fields.length > 0) refused(error)
      else setFailure(error)
      setSaving(false)
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
