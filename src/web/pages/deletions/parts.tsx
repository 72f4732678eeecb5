import { useState } from 'preact/hooks'
import { useLive } from '../../api/live.ts'
import type { DeletionAnswer } from '../../api/routes.ts'
import { Checkbox, TextArea } from '../../components/fields.tsx'
import { Badge, type Tone } from '../../components/text.tsx'
import { Tabs } from '../../components/views.tsx'

export const DeletionTabs = () => (
  <Tabs
    label="Of users"
    tabs={[
      { page: 'deletions', text: 'Deletion requests' },
      { page: 'suppressions', text: 'Suppressed users' },
    ]}
  />
)

const shown: Record<DeletionAnswer['state'], [tone: Tone, text: string, title: string]> = {
  finished: ['plain', 'written', 'All users are erased, and all delete calls are written'],
  interrupted: ['bad', 'interrupted', 'Delete calls are missing; resume writes them'],
  cut_off: ['bad', 'cut off', 'It ended before all users were erased; give all of them again'],
}

export function DeletionBadge({ state }: { state: DeletionAnswer['state'] }) {
  const [tone, text, title] = shown[state]
  return <Badge tone={tone} text={text} title={title} />
}

export interface UserChoice {
  text: string
  setText(text: string): void
  ids: string[]
  /** Null: all sources. */
  sourceIds: string[] | null
  setSourceIds(ids: string[] | null): void
}

export function useUsers(): UserChoice {
  const [text, setText] = useState('')
  const [sourceIds, setSourceIds] = useState<string[] | null>(null)
  const ids = [...new Set(text.split(/\r?\n/).map((line) => line.trim()))].filter((line) => line !== '')
  return { text, setText, ids, sourceIds, setSourceIds }
}

/** Which users, and at which sources. */
export function UserFields({ users }: { users: UserChoice }) {
  const { text, setText, sourceIds, setSourceIds } = users
  const sources = useLive('GET /sources', { query: { limit: 200 } }, 0)
  const isChosen = (id: string) => sourceIds?.includes(id) ?? false
  const choose = (id: string, isIn: boolean) =>
    setSourceIds([...(sourceIds ?? []).filter((each) => each !== id), ...(isIn ? [id] : [])])
  return (
    <>
      <TextArea label="Users" hint="A user id a line." rows={4} value={text} change={setText} />
      <Checkbox
        label="At all sources"
        checked={sourceIds === null}
        change={(isAll) => setSourceIds(isAll ? null : [])}
      />
      {sourceIds !== null && (
        <fieldset class="choices">
          <legend>At these sources</legend>
          {(sources.data?.data ?? [])
            .filter(({ builtIn }) => !builtIn)
            .map(({ id }) => (
              <Checkbox key={id} label={id} checked={isChosen(id)} change={(isIn) => choose(id, isIn)} />
            ))}
        </fieldset>
      )}
    </>
  )
}
