import { pathTo } from '../../../console/page-paths.ts'
import { healthWords } from '../../../core/statistics/health.ts'
import type { DestinationNowAnswer } from '../../api/routes.ts'
import { query, setQuery } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { Select } from '../../components/fields.tsx'
import { attemptsLink, callsLink, deadLettersLink } from '../../components/figure-links.ts'
import { compactText, countOf, msText, percentText } from '../../components/figures.ts'
import { Empty, NotKnown, NoValue } from '../../components/notices.tsx'
import { DaySparkline } from '../../components/sparkline.tsx'
import { useSettled } from '../../components/settled.ts'
import { FilterByName, PageTable, usePage, type Column } from '../../components/table.tsx'
import { Figure, HealthBadge } from '../../components/text.tsx'

const noAttempts = 'No attempts within 24 hours'
const usual = 'worst'
const healths = [
  ['', 'any'],
  ...healthWords.map((word) => [word, word.replaceAll('_', ' ')] as const),
] as const

/** All destinations, the worst first unless another order is chosen. */
export function Destinations() {
  const [text, health] = ['q', 'health'].map((name) => query.value.get(name) ?? '')
  const settled = useSettled(text!)
  const sort = query.value.get('sort') ?? usual
  const asked = {
    query: { window: '24h', hours: true, q: settled, health, sort: sort === usual ? null : sort },
  }
  const live = usePage('GET /overview/destinations', { asked, follows: 'all' })
  const isFiltered = text !== '' || health !== ''
  const choose = (by: string) => setQuery({ sort: by === usual ? null : by, cursor: null })
  // What was found by another filter says nothing of all, and its field must stay for whoever types in it.
  const isNone = !isFiltered && settled === '' && !live.isOfBefore && live.data?.total === 0
  return (
    <>
      <PageTitle title="Destinations" curl={{ route: 'GET /overview/destinations', asked }}>
        {may('admin') && (
          <a class="button button-primary" href={pathTo('newDestination')}>
            New destination
          </a>
        )}
      </PageTitle>
      {isNone ? (
        <None />
      ) : (
        <>
          <div class="filters">
            <FilterByName />
            <Select
              label="Health"
              value={health!}
              choices={healths}
              change={(to) => setQuery({ health: to, cursor: null })}
            />
            <p class="filters-count" role="status">
              {live.data && countOf(live.data.total, 'destination')}
            </p>
          </div>
          <PageTable<'GET /overview/destinations'>
            live={live}
            what="destinations"
            columns={columns}
            keyOf={({ id }) => id}
            sorting={{ by: sort, choose }}
            empty={{
              title:
                settled === ''
                  ? 'No destination is so.'
                  : `No destination has “${settled}” in its name or id.`,
            }}
          />
        </>
      )}
    </>
  )
}

function None() {
  return (
    <Empty title="There are no destinations yet.">
      {may('admin') ? (
        <a class="button button-primary" href={pathTo('newDestination')}>
          Make the first one
        </a>
      ) : (
        <p>Somebody with the role admin can make one.</p>
      )}
    </Empty>
  )
}

const columns: Column<DestinationNowAnswer>[] = [
  {
    head: 'Destination',
    isName: true,
    sort: { by: 'name', direction: 'ascending' },
    cell: ({ id, name }) => (
      <a class="thing" href={pathTo('destination', { id })}>
        <span class="foreign">{name}</span>
        {name !== id && <span class="id faint">{id}</span>}
      </a>
    ),
  },
  {
    head: 'Health',
    sort: { by: usual, direction: 'ascending' },
    cell: ({ health }) => <HealthBadge health={health} />,
  },
  { head: 'Last 24 hours', moves: 'medium', cell: ({ hours = [] }) => <DaySparkline hours={hours} /> },
  {
    head: 'Delivered',
    isNumber: true,
    moves: 'narrow',
    sort: { by: 'delivered', direction: 'descending' },
    cell: ({ delivered }) => compactText(delivered),
  },
  {
    head: 'Success',
    isNumber: true,
    moves: 'narrow',
    sort: { by: 'success', direction: 'ascending' },
    cell: ({ id, successRate, failed }) =>
      successRate === null ? (
        <NoValue why={noAttempts} />
      ) : (
        <Figure
          href={failed > 0 ? attemptsLink(id, { outcome: 'failed', since: '1d' }) : undefined}
          what={`Success of ${id}`}
        >
          {percentText(successRate)}
        </Figure>
      ),
  },
  {
    head: 'p95',
    isNumber: true,
    moves: 'narrow',
    sort: { by: 'p95', direction: 'descending' },
    cell: ({ p95Ms }) => (p95Ms === null ? <NoValue why={noAttempts} /> : msText(p95Ms)),
  },
  {
    head: 'Waiting',
    isNumber: true,
    moves: 'medium',
    sort: { by: 'waiting', direction: 'descending' },
    cell: ({ id, waiting }) =>
      waiting === null ? (
        <NotKnown why="There is too much of it to count, or Kafka does not answer" />
      ) : (
        <Figure
          href={waiting > 0 ? callsLink(id, { step: 'waiting' }) : undefined}
          what={`Waiting for ${id}`}
        >
          {compactText(waiting)}
        </Figure>
      ),
  },
  {
    head: 'Dead letters',
    isNumber: true,
    moves: 'narrow',
    sort: { by: 'dead_letters', direction: 'descending' },
    cell: ({ id, deadLettered }) => (
      <span class={deadLettered > 0 ? 'is-bad' : ''}>
        <Figure
          href={deadLettered > 0 ? deadLettersLink({ destination: id, since: '24h' }) : undefined}
          what={`Dead letters of ${id}`}
        >
          {compactText(deadLettered)}
        </Figure>
      </span>
    ),
  },
]
