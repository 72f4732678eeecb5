import type { ComponentChildren } from 'preact'
import { pathTo } from '../../../console/page-paths.ts'
import { useLongRequest, type LongRequest } from '../../api/request.ts'
import type { EventFieldsAnswer, EventListAnswer, IndexProgressLine } from '../../api/routes.ts'
import { query } from '../../app/address.ts'
import { PageTitle } from '../../app/shell.tsx'
import { countText } from '../../components/figures.ts'
import { Empty, Failure, Loading, Note, Progress } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { Ago } from '../../components/time.tsx'
import type { PageProps } from '../page-props.ts'

type EventRow = EventListAnswer['events'][number]
type FieldRow = EventFieldsAnswer['fields'][number]

/** Which events come in at a source; with a type in the query, the fields of one of them. */
export function SourceEvents({ params }: PageProps) {
  const id = params.id!
  const type = query.value.get('type')
  const name = query.value.get('name')
  return type === null ? <EventList id={id} /> : <EventFields id={id} type={type} name={name} />
}

function EventList({ id }: { id: string }) {
  const asked = { query: { source: id } }
  const live = useLongRequest<'GET /events', IndexProgressLine>('GET /events', asked)
  return (
    <>
      <PageTitle
        title="Events"
        above={
          <>
            <a href={pathTo('sources')}>Sources</a> / <a href={pathTo('source', { id })}>{id}</a>
          </>
        }
        curl={{ route: 'GET /events', asked }}
      />
      <Answered live={live} what="events">
        {({ events, knownSince, omittedCalls }) => (
          <>
            <Counted since={knownSince} />
            {omittedCalls > 0 && (
              <Note tone="warn">
                {countText(omittedCalls)} calls are of none of these: there are more events than are kept, or
                these calls cannot be delivered.
              </Note>
            )}
            {events.length === 0 ? (
              <Empty title="No call of this source is in Kafka." />
            ) : (
              <Table label="Events" columns={columnsOf(id)} rows={events} keyOf={keyOf} />
            )}
          </>
        )}
      </Answered>
    </>
  )
}

const keyOf = ({ type, name }: EventRow): string => JSON.stringify([type, name])

function columnsOf(id: string): Column<EventRow>[] {
  return [
    {
      head: 'Event',
      isName: true,
      cell: ({ type, name }) => (
        <a
          href={`${pathTo('sourceEvents', { id })}?${new URLSearchParams({ type, ...(name !== null && { name }) })}`}
        >
          {name ?? <span class="faint">without a name</span>}
        </a>
      ),
    },
    { head: 'Type', cell: ({ type }) => type },
    { head: 'Calls', isNumber: true, cell: ({ calls }) => countText(calls) },
    { head: 'Fields', isNumber: true, moves: 'medium', cell: ({ fields }) => countText(fields) },
    { head: 'First seen', moves: 'narrow', cell: ({ firstSeen }) => <Ago at={firstSeen} /> },
    { head: 'Last seen', cell: ({ lastSeen }) => <Ago at={lastSeen} /> },
  ]
}

function EventFields({ id, type, name }: { id: string; type: string; name: string | null }) {
  const asked = { query: { source: id, type, name } }
  const live = useLongRequest<'GET /events/fields', IndexProgressLine>('GET /events/fields', asked)
  return (
    <>
      <PageTitle
        title={name ?? type}
        above={
          <>
            <a href={pathTo('source', { id })}>{id}</a> / <a href={pathTo('sourceEvents', { id })}>Events</a>
          </>
        }
        curl={{ route: 'GET /events/fields', asked }}
      />
      <Answered live={live} what="fields">
        {({ calls, firstSeen, lastSeen, knownSince, fields, omittedFields }) => (
          <>
            <p>
              {countText(calls)} calls of type <code>{type}</code>, the first <Ago at={firstSeen} />, the last{' '}
              <Ago at={lastSeen} />.
            </p>
            <Counted since={knownSince} />
            {omittedFields > 0 && (
              <Note tone="warn">There are more fields, or deeper ones, than are kept.</Note>
            )}
            {fields.length === 0 ? (
              <Empty title="Its calls have no properties, traits or context." />
            ) : (
              <Table label="Fields" columns={fieldColumns(calls)} rows={fields} keyOf={({ path }) => path} />
            )}
          </>
        )}
      </Answered>
    </>
  )
}

const fieldColumns = (calls: number): Column<FieldRow>[] => [
  { head: 'Field', isName: true, cell: ({ path }) => <code>{path}</code> },
  { head: 'Types', cell: ({ kinds }) => kinds.map(({ kind }) => kind).join(', ') },
  { head: 'Calls', isNumber: true, moves: 'narrow', cell: (field) => countText(field.calls) },
  {
    head: 'In',
    isNumber: true,
    cell: (field) => `${Math.floor((field.calls / calls) * 100)} %`,
  },
]

function Counted({ since }: { since: string | null }) {
  return since === null ? null : (
    <p class="lead">
      Counted in what Kafka kept: every call since <Ago at={since} />. Values are not kept.
    </p>
  )
}

/** While the index is built for the first time, how far it is. */
function Answered<T>({
  live: { data, failure, progress, reload },
  what,
  children,
}: {
  live: LongRequest<T, IndexProgressLine>
  what: string
  children: (data: T) => ComponentChildren
}) {
  if (failure) return <Failure failure={failure} retry={reload} />
  if (data !== null) return <>{children(data)}</>
  return progress === null ? (
    <Loading what={what} />
  ) : (
    <Progress label="Reading calls" done={progress.done} total={progress.total} />
  )
}
