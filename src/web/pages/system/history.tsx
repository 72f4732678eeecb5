import { pathTo } from '../../../console/page-paths.ts'
import type { HistoryAnswer } from '../../api/routes.ts'
import { query, setQuery } from '../../app/address.ts'
import { PageTitle } from '../../app/shell.tsx'
import { TextField } from '../../components/fields.tsx'
import { absoluteText, wordsOf } from '../../components/figures.ts'
import { NotKnown } from '../../components/notices.tsx'
import { PeriodFields } from '../../components/period.tsx'
import { PagedTable, type Column } from '../../components/table.tsx'
import { Ago } from '../../components/time.tsx'
import { SystemTabs } from './system-tabs.tsx'

type Changed = HistoryAnswer['changed'][number]

const filters = [
  ['destination', 'Destination'],
  ['source', 'Source'],
] as const

const periods = [
  ['', 'All that there were'],
  ['1h', 'The last hour'],
  ['1d', 'The last day'],
  ['7d', 'The last 7 days'],
] as const

/** Who changed what of the settings, and when. */
export function History() {
  const value = (name: string) => query.value.get(name)?.trim() ?? ''
  const names = [...filters.map(([name]) => name), 'since', 'until']
  const asked = { query: Object.fromEntries(names.map((name) => [name, value(name)])) }
  const isFiltered = Object.values(asked.query).some((value) => value !== '')
  return (
    <>
      <PageTitle title="Settings history" curl={{ route: 'GET /settings/history', asked }} />
      <SystemTabs />
      <div class="filters">
        {filters.map(([name, label]) => (
          <TextField
            key={name}
            label={label}
            type="search"
            placeholder="Its whole id"
            value={query.value.get(name) ?? ''}
            change={(value) => setQuery({ [name]: value, cursor: null })}
          />
        ))}
        <PeriodFields
          label="Time"
          since={value('since')}
          until={value('until')}
          periods={periods}
          choose={(period) => setQuery({ ...period, cursor: null })}
        />
      </div>
      <div class="history">
        <PagedTable
          route="GET /settings/history"
          asked={asked}
          what="changes of the settings"
          columns={columns}
          keyOf={({ version }) => String(version)}
          empty={{ title: isFiltered ? 'No such change was made.' : 'Nothing was changed yet.' }}
        />
      </div>
    </>
  )
}

const columns: Column<HistoryAnswer>[] = [
  { head: 'When', cell: ({ at }) => <Ago at={at} /> },
  {
    head: 'Who',
    moves: 'narrow',
    cell: ({ actor }) =>
      actor === null ? (
        <NotKnown why="Versions before did not note it" />
      ) : (
        <span class="foreign">{actor}</span>
      ),
  },
  {
    head: 'What',
    isName: true,
    cell: ({ changed }) => (
      <ul>
        {changed.slice(0, maxThings).map((each) => (
          <li key={`${each.kind}/${each.id}`}>
            <Thing changed={each} />
          </li>
        ))}
        {changed.length > maxThings && <li class="faint">{`and ${changed.length - maxThings} more`}</li>}
      </ul>
    ),
  },
  { head: 'Version', isNumber: true, moves: 'narrow', cell: ({ version }) => version },
]

/** Of a file that was applied. */
const maxThings = 20
const maxText = 200

function Thing({ changed: { kind, id, created, changes } }: { changed: Changed }) {
  const path = kind === 'destination' ? pathTo('destination', { id }) : null
  // What is new has all of its fields: those that say nothing are left out.
  const shown = changes.filter(({ to }) => !created || (to !== null && to !== false))
  return (
    <>
      {created ? 'Created' : 'Changed'} {kind}{' '}
      {path === null ? (
        <span class="id">{id}</span>
      ) : (
        <a class="id" href={path}>
          {id}
        </a>
      )}
      <ul class={created ? 'changes changes-of-new' : 'changes'}>
        {shown.map(({ field, from, to }) => (
          <li key={field}>
            <span class="faint">{fieldText(field)}:</span> {!created && <Value field={field} value={from} />}
            {!created && ' → '}
            <Value field={field} value={to} />
          </li>
        ))}
      </ul>
    </>
  )
}

const fieldText = (field: string): string =>
  wordsOf(field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))

function Value({ field, value }: { field: string; value: unknown }) {
  if (value === null || value === undefined) return <span class="faint">none</span>
  if (field === 'writeKey') return <span class="faint">covered</span>
  const text = textOf(value)
  return (
    <span class="id" title={text.length > maxText ? text : undefined}>
      {text.length > maxText ? `${text.slice(0, maxText)}…` : text}
    </span>
  )
}

/** Of the settings' own fields; times in them are epoch ms. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  const isTime = (part: unknown): part is number => typeof part === 'number' && part > minTime
  if (isTime(value)) return absoluteText(value)
  return JSON.stringify(value, (_name, part: unknown) => (isTime(part) ? absoluteText(part) : part))
}

const minTime = 1_000_000_000_000
