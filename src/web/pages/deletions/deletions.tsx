import { useState } from 'preact/hooks'
import { pathTo } from '../../../console/page-paths.ts'
import { PageTitle } from '../../app/page-title.tsx'
import { may } from '../../app/session.ts'
import type { DeletionAnswer } from '../../api/routes.ts'
import { CopyAsCurl } from '../../components/copy.tsx'
import { countText } from '../../components/figures.ts'
import { PagedTable } from '../../components/paged-table.tsx'
import type { Column } from '../../components/table.tsx'
import { Ago } from '../../components/time.tsx'
import { DeletionTabs } from './deletion-tabs.tsx'
import { EraseDialog } from './erase-dialog.tsx'
import { DeletionBadge } from './states.tsx'

const asked = { query: { order: 'newest' } }

/** Requests to erase users, and to have the destinations forget them. */
export function Deletions() {
  const [isAsking, setAsking] = useState(false)
  return (
    <>
      <PageTitle title="Deletions">
        <CopyAsCurl route="GET /deletions" asked={asked} />
        {may('admin') && (
          <button type="button" class="button button-primary" onClick={() => setAsking(true)}>
            Erase users
          </button>
        )}
      </PageTitle>
      <DeletionTabs />
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
  { head: 'Users', isNumber: true, cell: ({ users }) => countText(users) },
  { head: 'State', cell: ({ state }) => <DeletionBadge state={state} /> },
  {
    head: 'Sources',
    hides: 'narrow',
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
