import { useEffect, useRef, useState } from 'preact/hooks'
import { pathTo } from '../../../console/page-paths.ts'
import { useLive } from '../../api/live.ts'
import { requestWithProgress } from '../../api/request.ts'
import type { DeletionAnswer, DeletionProgressLine } from '../../api/routes.ts'
import { go } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { ActionDialog } from '../../components/dialog.tsx'
import { Checkbox, TextField } from '../../components/fields.tsx'
import { countText, countOf } from '../../components/figures.ts'
import { Failure, NoValue, Progress, say } from '../../components/notices.tsx'
import { randomKey } from '../../components/random.ts'
import { PagedTable, type Column } from '../../components/table.tsx'
import { Ago } from '../../components/time.tsx'
import { DeletionTabs, DeletionBadge, UserFields, useUsers, type UserChoice } from './parts.tsx'

const asked = { query: { order: 'newest' } }

/** Requests to erase users, and to have the destinations forget them. */
export function Deletions() {
  const [isAsking, setAsking] = useState(false)
  return (
    <>
      <PageTitle title="Deletions" curl={{ route: 'GET /deletions', asked }}>
        {may('admin') && (
          <button type="button" class="button button-primary" onClick={() => setAsking(true)}>
            Erase users
          </button>
        )}
      </PageTitle>
      <DeletionTabs />
      {may('operator') && <WasErased />}
      <PagedTable
        route="GET /deletions"
        asked={asked}
        what="deletion requests"
        columns={columns}
        keyOf={({ id }) => id}
        empty={{
          title: 'There was no deletion request within 40 days.',
          text: may('admin')
            ? 'When a user asks to be forgotten, erase the user here: each destination gets a delete call.'
            : 'Somebody with the role admin can make one.',
        }}
      />
      {isAsking && <EraseDialog close={() => setAsking(false)} />}
    </>
  )
}

const maxNamed = 4

const columns: Column<DeletionAnswer>[] = [
  {
    head: 'Request',
    isName: true,
    cell: ({ id }) => (
      <a class="id" href={pathTo('deletion', { id })}>
        {id}
      </a>
    ),
  },
  { head: 'Requested', cell: ({ requestedAt }) => <Ago at={requestedAt} /> },
  {
    head: 'By',
    moves: 'medium',
    cell: ({ actor }) =>
      actor === null ? <NoValue why="Not recorded" /> : <span class="foreign">{actor}</span>,
  },
  { head: 'Users', isNumber: true, moves: 'narrow', cell: ({ users }) => countText(users) },
  { head: 'State', cell: ({ state }) => <DeletionBadge state={state} /> },
  {
    head: 'Sources',
    moves: 'narrow',
    cell: ({ sources }) => (
      <span class="words">
        {sources.slice(0, maxNamed).map((id) => (
          <span key={id} class="id">
            {id}
          </span>
        ))}
        {sources.length > maxNamed && (
          <span class="faint">and {countText(sources.length - maxNamed)} more</span>
        )}
      </span>
    ),
  },
]

const quietMs = 400

/** Whom it would erase, counted once nobody has typed for a moment. */
function Planned({ ids, sourceIds }: Pick<UserChoice, 'ids' | 'sourceIds'>) {
  const now = JSON.stringify({ userIds: ids, ...(sourceIds && { sourceIds }) })
  const [settled, setSettled] = useState(now)
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(now), quietMs)
    return () => window.clearTimeout(timer)
  }, [now])
  const body = JSON.parse(settled) as { userIds: string[]; sourceIds?: string[] }
  const isWanted = body.userIds.length > 0 && body.sourceIds?.length !== 0
  const { data, failure } = useLive('POST /deletions/dry-run', { body }, 0, isWanted)
  if (failure) return <Failure failure={failure} />
  if (data === null) return null
  const silent = data.sources.filter(({ notified }) => !notified).map(({ sourceId }) => sourceId)
  return (
    <p role="status">
      {`Erases ${countOf(data.users, 'user')} at ${countOf(data.sources.length, 'source')}, and writes ${countOf(data.deleteCalls, 'delete call')}.`}
      {silent.length > 0 && ` No destination is to be told at: ${silent.join(', ')}.`}
    </p>
  )
}

/** Whether and when a user was erased. */
function WasErased() {
  const [text, setText] = useState('')
  const [asked, setAsked] = useState('')
  const { data, failure } = useLive('GET /users/{id}/erasures', { id: asked }, 0, asked !== '')
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault()
        setAsked(text.trim())
      }}
    >
      <TextField label="Was this user erased?" type="search" value={text} change={setText} />
      <button type="submit" class="button">
        Look
      </button>
      <div class="filters-count" role="status">
        {failure && <Failure failure={failure} />}
        {data &&
          (data.erasures.length === 0 ? (
            `No: no request of the last 40 days named “${data.userId}”, written exactly so.`
          ) : (
            <ul>
              {data.erasures.map(({ sourceId, erasedAt }) => (
                <li key={sourceId}>
                  Yes, at <span class="id">{sourceId}</span>: <Ago at={erasedAt} />
                </li>
              ))}
            </ul>
          ))}
      </div>
    </form>
  )
}

/** Asks which users, and at which sources; goes to the request's own page. */
export function EraseDialog({ close }: { close: () => void }) {
  const users = useUsers()
  const [isSuppressing, setSuppressing] = useState(false)
  const [progress, setProgress] = useState<DeletionProgressLine | null>(null)
  // The same for each try: what was written by one whose answer was lost is not written again.
  const key = useRef(randomKey())
  const erase = async (isOpen: () => boolean) => {
    const headers = { 'Idempotency-Key': key.current }
    const { ids, sourceIds } = users
    let id: string
    if (isSuppressing) {
      const body = {
        regulationType: 'SUPPRESS_WITH_DELETE',
        subjectIds: ids,
        ...(sourceIds && { sourceIds }),
      }
      id = (await requestWithProgress('POST /regulations', { body, headers }, setProgress)).deletion!.id
    } else {
      const body = { userIds: ids, ...(sourceIds && { sourceIds }) }
      id = (await requestWithProgress('POST /deletions', { body, headers }, setProgress)).id
    }
    say(`${countOf(ids.length, 'user')} erased; the delete calls are on their way`)
    if (isOpen()) go(pathTo('deletion', { id }))
  }
  return (
    <ActionDialog
      title="Erase users"
      action={users.ids.length === 0 ? 'Erase' : `Erase ${countOf(users.ids.length, 'user')}`}
      isDestructive
      act={erase}
      close={close}
    >
      <p>
        What waits of their calls is dropped, their dead letters are gone, and each enabled destination gets a
        delete call for each user. This cannot be undone.
      </p>
      <UserFields users={users} />
      <Planned ids={users.ids} sourceIds={users.sourceIds} />
      <Checkbox
        label="Suppress them too"
        hint="Takes and delivers no further calls of them, until that is ended."
        checked={isSuppressing}
        change={setSuppressing}
      />
      {progress && (
        <Progress
          label={progress.phase === 'erasing' ? 'Users erased' : 'Delete calls written'}
          done={progress.done}
          total={progress.total}
        />
      )}
    </ActionDialog>
  )
}
