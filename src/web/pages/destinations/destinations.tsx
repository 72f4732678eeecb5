import { pathTo } from '../../../console/page-paths.ts'
import { useLive } from '../../api/live.ts'
import type { DestinationSummary } from '../../api/routes.ts'
import { query, setQuery } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { TextField } from '../../components/fields.tsx'
import { attemptsLink, deadLettersLink } from '../../components/figure-links.ts'
import { compactText, countOf, msText, percentText } from '../../components/figures.ts'
import { Empty, NoValue } from '../../components/notices.tsx'
import { DaySparkline } from '../../components/plot.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { Figure, HealthBadge, CopyAsCurl } from '../../components/text.tsx'
import { now } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'
import { worstFirst } from './worst-first.ts'

const asked = { query: { window: '24h', hours: true } }
const maxRows = 200
const noAttempts = 'No attempts within 24 hours'

/** All destinations, the worst first. */
export function Destinations() {
  const live = useLive('GET /overview', asked, 10_000)
  const text = query.value.get('q') ?? ''
  return (
    <>
      <PageTitle title="Destinations">
        <CopyAsCurl route="GET /overview" asked={asked} />
        {may('admin') && (
          <a class="button button-primary" href={pathTo('newDestination')}>
            New destination
          </a>
        )}
      </PageTitle>
      <Loaded live={live} what="destinations">
        {({ destinations }) =>
          destinations.length === 0 ? <None /> : <Found all={destinations} text={text} />
        }
      </Loaded>
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

function Found({ all, text }: { all: readonly DestinationSummary[]; text: string }) {
  const wanted = text.toLowerCase()
  const found = all.filter(({ id, name }) => `${id}\n${name}`.toLowerCase().includes(wanted))
  const rows = worstFirst(found)
  const shown = rows.slice(0, maxRows)
  return (
    <>
      <div class="filters">
        <TextField
          label="Filter by name or id"
          type="search"
          value={text}
          change={(value) => setQuery({ q: value })}
        />
        <p class="filters-count" role="status">
          {countOf(found.length, 'destination')}
          {shown.length < found.length && `, of which the worst ${maxRows} are shown`}
        </p>
      </div>
      {shown.length > 0 ? (
        <Table label="Destinations" columns={columns} rows={shown} keyOf={({ id }) => id} />
      ) : (
        <Empty title={`No destination has “${text}” in its name or id.`} />
      )}
    </>
  )
}

const columns: Column<DestinationSummary>[] = [
  {
    head: 'Destination',
    isName: true,
    cell: ({ id, name }) => (
      <a class="thing" href={pathTo('destination', { id })}>
        <span class="foreign">{name}</span>
        {name !== id && <span class="id faint">{id}</span>}
      </a>
    ),
  },
  { head: 'Health', cell: ({ health }) => <HealthBadge health={health} /> },
  {
    head: 'Last 24 hours',
    hides: 'medium',
    cell: ({ hours = [] }) => <DaySparkline hours={hours} now={now.value} />,
  },
  {
    head: 'Delivered',
    isNumber: true,
    hides: 'narrow',
    cell: ({ delivered }) => compactText(delivered),
  },
  {
    head: 'Success',
    isNumber: true,
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
    hides: 'narrow',
    cell: ({ p95Ms }) => (p95Ms === null ? <NoValue why={noAttempts} /> : msText(p95Ms)),
  },
  { head: 'Queued', isNumber: true, hides: 'medium', cell: ({ queued }) => compactText(queued) },
  {
    head: 'Dead letters',
    isNumber: true,
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
