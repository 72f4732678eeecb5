import { useState } from 'preact/hooks'
import { pathTo } from '../../../console/page-paths.ts'
import { useLive } from '../../api/live.ts'
import { request } from '../../api/request.ts'
import type { ComputationAnswer } from '../../api/routes.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { ActionDialog } from '../../components/dialog.tsx'
import { TextField, IdField } from '../../components/fields.tsx'
import { countText } from '../../components/figures.ts'
import { NotKnown, NoValue, say } from '../../components/notices.tsx'
import { PagedTable, type Column } from '../../components/table.tsx'
import { Badge } from '../../components/text.tsx'
import { Ago } from '../../components/time.tsx'
import { audiences, traits, type Kind } from './kinds.ts'

/** Audiences and computed traits: lists of users that become identify calls. */
export function Computations() {
  return (
    <>
      <PageTitle title="Audiences and traits" curl={{ route: 'GET /audiences' }} />
      <p class="lead">
        Lists of users that you give. Whoever enters or leaves an audience, or gets another value, becomes an
        identify call to the destinations of its source.
      </p>
      <List kind={audiences} title="Audiences" />
      <List kind={traits} title="Computed traits" />
    </>
  )
}

function List({ kind, title }: { kind: Kind; title: string }) {
  const [isNew, setNew] = useState(false)
  const [version, setVersion] = useState(0)
  return (
    <section class="section">
      <div class="section-head">
        <h2>{title}</h2>
        {may('admin') && (
          <button type="button" class="button button-small" onClick={() => setNew(true)}>
            {`New ${kind.one}`}
          </button>
        )}
      </div>
      <PagedTable
        route={kind.list as 'GET /audiences'}
        what={kind.many}
        columns={columnsOf(kind)}
        keyOf={({ id }) => id}
        cursorName={`${kind.page}-cursor`}
        version={version}
        empty={{
          title: `There are no ${kind.many} yet.`,
          text: may('admin')
            ? `Make one, then give it its list of users.`
            : 'Somebody with the role admin can make one.',
        }}
      />
      {isNew && (
        <NewComputation
          kind={kind}
          close={() => setNew(false)}
          done={() => setVersion((before) => before + 1)}
        />
      )}
    </section>
  )
}

const columnsOf = (kind: Kind): Column<ComputationAnswer>[] => [
  {
    head: kind.page === 'audience' ? 'Audience' : 'Trait',
    isName: true,
    cell: ({ id, name }) => (
      <a class="thing" href={pathTo(kind.page, { id })}>
        <span class="foreign">{name}</span>
        {name !== id && <span class="id faint">{id}</span>}
      </a>
    ),
  },
  { head: 'Property', moves: 'medium', cell: ({ key }) => <span class="id">{key}</span> },
  { head: 'Source', moves: 'medium', cell: ({ sourceId }) => <span class="id">{sourceId}</span> },
  {
    head: kind.counted,
    isNumber: true,
    moves: 'narrow',
    cell: ({ id }) => <Count kind={kind} id={id} />,
  },
  {
    head: 'Last sync',
    moves: 'narrow',
    cell: ({ lastSync }) =>
      lastSync === null ? <span class="faint">never</span> : <Ago at={lastSync.finishedAt} />,
  },
  {
    head: 'Changed by it',
    isNumber: true,
    moves: 'narrow',
    cell: ({ lastSync }) =>
      lastSync === null ? (
        <NoValue why="There was no sync yet" />
      ) : (
        `+${countText(lastSync.entered)} −${countText(lastSync.left)}`
      ),
  },
  { head: 'State', cell: (each) => <SyncBadge of={each} /> },
]

export function SyncBadge({ of: { openSync } }: { of: ComputationAnswer }) {
  if (openSync === null) return <Badge tone="good" text="in sync" />
  return (
    <Badge
      tone="warn"
      text="sync not finished"
      title="Running, or interrupted: the next sync finishes it first"
    />
  )
}

/** Counted for each by itself: the list does not have it. */
function Count({ kind, id }: { kind: Kind; id: string }) {
  const { data, failure } = useLive(kind.show, { id }, 0)
  if (failure) return <NotKnown why={failure.message} />
  return <>{data === null ? '…' : countText(data.count)}</>
}

function NewComputation({ kind, close, done }: { kind: Kind; close: () => void; done: () => void }) {
  const [id, setId] = useState('')
  const [name, setName] = useState('')
  const [sourceId, setSourceId] = useState('')
  const create = async () => {
    await request(kind.create, { body: { id, name: name || id, sourceId } })
    say(`${id} is there; give it its list next`)
    done()
  }
  return (
    <ActionDialog title={`New ${kind.one}`} action={`Create ${kind.one}`} close={close} act={create}>
      <IdField value={id} change={setId} />
      <TextField
        label="Name"
        value={name}
        change={setName}
        hint="For people. In snake_case it is the property that destinations get. Empty: the id."
      />
      <TextField
        label="Source"
        value={sourceId}
        change={setSourceId}
        hint="The id of the source whose destinations are notified."
      />
    </ActionDialog>
  )
}
