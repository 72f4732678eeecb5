import { useState } from 'preact/hooks'
import { request } from '../../api/request.ts'
import type { SuppressionAnswer } from '../../api/routes.ts'
import { query, setQuery } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { ActionDialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/fields.tsx'
import { countOf } from '../../components/figures.ts'
import { say } from '../../components/notices.tsx'
import { PagedTable, type Column } from '../../components/table.tsx'
import { Ago } from '../../components/time.tsx'
import { DeletionTabs, UserFields, useUsers } from './parts.tsx'

/** Users whose calls are neither taken nor delivered. */
export function Suppressions() {
  const userId = query.value.get('user') ?? ''
  const asked = { query: { userId } }
  const [isAsking, setAsking] = useState(false)
  const [ending, setEnding] = useState<SuppressionAnswer | null>(null)
  const [version, setVersion] = useState(0)
  const done = () => setVersion((before) => before + 1)
  return (
    <>
      <PageTitle title="Suppressed users" curl={{ route: 'GET /suppressions', asked }}>
        {may('admin') && (
          <button type="button" class="button button-primary" onClick={() => setAsking(true)}>
            Suppress users
          </button>
        )}
      </PageTitle>
      <DeletionTabs />
      <div class="filters">
        <TextField
          label="Only this user"
          type="search"
          value={userId}
          change={(user) => setQuery({ user, cursor: null })}
        />
      </div>
      <PagedTable
        route="GET /suppressions"
        asked={asked}
        what="suppressed users"
        columns={columnsOf(setEnding)}
        keyOf={(each) => JSON.stringify([each.sourceId, each.userId])}
        version={version}
        empty={
          userId === ''
            ? {
                title: 'No user is suppressed.',
                text: 'Calls of a suppressed user are neither taken nor delivered.',
              }
            : { title: 'This user is not suppressed.' }
        }
      />
      {isAsking && <SuppressDialog close={() => setAsking(false)} done={done} />}
      {ending && <EndDialog item={ending} close={() => setEnding(null)} done={done} />}
    </>
  )
}

const columnsOf = (end: (item: SuppressionAnswer) => void): Column<SuppressionAnswer>[] => [
  { head: 'User', isName: true, cell: ({ userId }) => <span class="id">{userId}</span> },
  {
    head: 'Source',
    moves: 'narrow',
    cell: ({ sourceId }) => (sourceId === null ? 'every source' : <span class="id">{sourceId}</span>),
  },
  { head: 'Suppressed', cell: ({ since }) => <Ago at={since} /> },
  ...(may('admin')
    ? [
        {
          head: 'Actions',
          cell: (item: SuppressionAnswer) => (
            <div class="row-actions">
              <button
                type="button"
                class="button button-small"
                aria-label={`End suppression of ${item.userId}`}
                onClick={() => end(item)}
              >
                End
              </button>
            </div>
          ),
        },
      ]
    : []),
]

function SuppressDialog({ close, done }: { close: () => void; done: () => void }) {
  const users = useUsers()
  const suppress = async () => {
    const { ids, sourceIds } = users
    const body = { regulationType: 'SUPPRESS_ONLY', subjectIds: ids, ...(sourceIds && { sourceIds }) }
    const { data } = await request('POST /regulations', { body })
    say(`${countOf(data.changed, 'user')} suppressed`)
    done()
  }
  return (
    <ActionDialog title="Suppress users" action="Suppress" act={suppress} close={close}>
      <p>
        From now on their calls are neither taken nor delivered. What was delivered before stays where it is.
      </p>
      <UserFields users={users} />
    </ActionDialog>
  )
}

function EndDialog({
  item: { userId, sourceId },
  close,
  done,
}: {
  item: SuppressionAnswer
  close: () => void
  done: () => void
}) {
  const end = async () => {
    const sources = sourceId === null ? {} : { sourceIds: [sourceId] }
    await request('POST /regulations', {
      body: { regulationType: 'UNSUPPRESS', subjectIds: [userId], ...sources },
    })
    say('The suppression has ended')
    done()
  }
  return (
    <ActionDialog
      title={`End the suppression of “${userId}”?`}
      action="End suppression"
      act={end}
      close={close}
    >
      <p>{`Their calls are taken and delivered again${sourceId === null ? '' : `, at source ${sourceId}`}.`}</p>
    </ActionDialog>
  )
}
