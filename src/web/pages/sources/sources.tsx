import { useState } from 'preact/hooks'
import { pathTo } from '../../../console/page-paths.ts'
import { PageTitle } from '../../app/page-title.tsx'
import { may } from '../../app/session.ts'
import { useLive } from '../../api/live.ts'
import { request } from '../../api/request.ts'
import type { OverviewAnswer, SourceAnswer } from '../../api/routes.ts'
import { Badge } from '../../components/badge.tsx'
import { CopyAsCurl } from '../../components/copy.tsx'
import { ActionDialog } from '../../components/dialog.tsx'
import { compactText, countText } from '../../components/figures.ts'
import { NotKnown, NoValue } from '../../components/notices.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import type { Column } from '../../components/table.tsx'
import { say } from '../../components/toast.tsx'
import { ChangeSource, NewSource } from './source-forms.tsx'
import { WriteKey } from './write-key.tsx'

type Asked = { what: 'new' } | { what: 'change' | 'enable' | 'disable'; source: SourceAnswer }
type Counts = OverviewAnswer['sources'][number]

/** Where calls come from: their write keys, quotas and the calls of the last day. */
export function Sources() {
  const overview = useLive('GET /overview', { query: { window: '24h' } }, 30_000)
  const [asked, setAsked] = useState<Asked | null>(null)
  const [version, setVersion] = useState(0)
  const counts = overview.data && new Map(overview.data.sources.map((each) => [each.id, each]))
  const close = () => setAsked(null)
  const done = (text: string) => {
    say(text)
    setVersion((before) => before + 1)
  }
  return (
    <>
      <PageTitle title="Sources">
        <CopyAsCurl route="GET /sources" />
        {may('admin') && (
          <button type="button" class="button button-primary" onClick={() => setAsked({ what: 'new' })}>
            New source
          </button>
        )}
      </PageTitle>
      <PagedTable
        route="GET /sources"
        what="sources"
        columns={columnsOf(counts, setAsked)}
        keyOf={({ id }) => id}
        version={version}
        empty={{
          title: 'There are no sources yet.',
          text: may('admin')
            ? 'Make one: its write key is what applications send their calls with.'
            : 'Somebody with the role admin can make one.',
        }}
      />
      {asked?.what === 'new' && <NewSource close={close} done={done} />}
      {asked?.what === 'change' && <ChangeSource id={asked.source.id} close={close} done={done} />}
      {(asked?.what === 'enable' || asked?.what === 'disable') && (
        <TurnSource turn={asked.what} source={asked.source} close={close} done={done} />
      )}
    </>
  )
}

function TurnSource({
  turn,
  source: { id, name },
  close,
  done,
}: {
  turn: 'enable' | 'disable'
  source: SourceAnswer
  close: () => void
  done: (text: string) => void
}) {
  const verb = turn === 'enable' ? 'Enable' : 'Disable'
  return (
    <ActionDialog
      title={`${verb} source “${name}”?`}
      action={`${verb} ${id}`}
      isDestructive={turn === 'disable'}
      close={close}
      act={async () => {
        await request(`POST /sources/{id}/${turn}`, { id })
        done(`Source ${id} is ${turn}d`)
      }}
    >
      <p>
        {turn === 'enable'
          ? 'Collectors take its calls again.'
          : 'Collectors refuse its calls, and calls that wait are skipped. Senders do not try refused calls again.'}
      </p>
    </ActionDialog>
  )
}

function columnsOf(
  counts: ReadonlyMap<string, Counts> | null,
  ask: (asked: Asked) => void,
): Column<SourceAnswer>[] {
  const figure = (id: string, field: 'accepted' | 'refused') => {
    if (counts === null) return <NotKnown why="The statistics are not read yet" />
    const count = counts.get(id)?.[field] ?? 0
    return <span class={field === 'refused' && count > 0 ? 'is-bad' : ''}>{compactText(count)}</span>
  }
  return [
    {
      head: 'Source',
      isName: true,
      cell: ({ id, name }) => (
        <span class="thing">
          <span class="foreign">{name}</span>
          {name !== id && <span class="id faint">{id}</span>}
        </span>
      ),
    },
    {
      head: 'State',
      cell: ({ enabled, builtIn }) =>
        builtIn ? (
          <Badge
            tone="plain"
            text="built in"
            title="Operational events, which destinations can subscribe to"
          />
        ) : (
          <Badge tone={enabled ? 'good' : 'plain'} text={enabled ? 'taking calls' : 'disabled'} />
        ),
    },
    { head: 'Accepted, 24 h', isNumber: true, hides: 'narrow', cell: ({ id }) => figure(id, 'accepted') },
    { head: 'Refused, 24 h', isNumber: true, hides: 'narrow', cell: ({ id }) => figure(id, 'refused') },
    {
      head: 'Quota',
      isNumber: true,
      hides: 'medium',
      cell: ({ maxRate }) => maxRate ?? <NoValue why="No quota" />,
    },
    {
      head: 'Write key',
      hides: 'medium',
      cell: ({ id, writeKey }) =>
        writeKey === null ? (
          <NoValue why="Built in: nobody sends calls to it" />
        ) : (
          <WriteKey of={id} text={writeKey} />
        ),
    },
    { head: 'Goes to', hides: 'medium', cell: ({ destinationIds }) => <GoesTo ids={destinationIds} /> },
    ...(may('admin')
      ? [
          {
            head: 'Actions',
            cell: (source: SourceAnswer) =>
              source.builtIn ? null : (
                <div class="row-actions">
                  <button
                    type="button"
                    class="button button-small"
                    aria-label={`Change ${source.id}`}
                    onClick={() => ask({ what: 'change', source })}
                  >
                    Change
                  </button>
                  <button
                    type="button"
                    class="button button-small"
                    aria-label={`${source.enabled ? 'Disable' : 'Enable'} ${source.id}`}
                    onClick={() => ask({ what: source.enabled ? 'disable' : 'enable', source })}
                  >
                    {source.enabled ? 'Disable' : 'Enable'}
                  </button>
                </div>
              ),
          },
        ]
      : []),
  ]
}

const maxNamed = 3

function GoesTo({ ids }: { ids: readonly string[] }) {
  if (ids.length === 0) return <NoValue why="No destination: its calls go nowhere" />
  return (
    <span class="words">
      {ids.slice(0, maxNamed).map((id) => (
        <a key={id} class="id" href={pathTo('destination', { id })}>
          {id}
        </a>
      ))}
      {ids.length > maxNamed && <span class="faint">and {countText(ids.length - maxNamed)} more</span>}
    </span>
  )
}
