import { useEffect } from 'preact/hooks'
import { pathTo } from '../../../console/page-paths.ts'
import { useLive } from '../../api/live.ts'
import type { SourceAnswer } from '../../api/routes.ts'
import { query, setQuery } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { Select } from '../../components/fields.tsx'
import { LateField } from '../../components/late-field.tsx'
import { Lazy } from '../../components/lazy.tsx'
import { Empty, Note } from '../../components/notices.tsx'
import { Loaded } from '../../components/views.tsx'
import type { TailFilters } from '../../components/tail.ts'

// Scripts of their own: other pages show these too.
const sendCalls = () => import('../../components/send-calls.tsx').then(({ SendCalls }) => SendCalls)
const calls = () => import('../../components/calls.tsx').then(({ Calls }) => Calls)

const askedSources = { query: { limit: 200 } }

/** A source's calls as they come in, and how to send it some. */
export function Live() {
  const live = useLive('GET /sources', askedSources, 0)
  const id = query.value.get('source') ?? live.data?.data.find(({ builtIn }) => !builtIn)?.id
  return (
    <>
      <PageTitle
        title="Live"
        curl={
          id === undefined
            ? undefined
            : { route: 'GET /sources/{id}/tail', asked: { id, query: { ...filtersNow() } } }
        }
      />
      <Loaded live={live} what="sources">
        {({ data, next }) =>
          id === undefined ? <None /> : <OfSource id={id} known={data} hasMore={next !== null} />
        }
      </Loaded>
    </>
  )
}

/** As they stand in the address. */
function filtersNow(): TailFilters {
  const of = (name: string) => query.value.get(name) ?? ''
  return { type: of('type'), event: of('event'), user: of('user') }
}

function None() {
  return (
    <Empty title="There are no sources yet.">
      {may('admin') ? (
        <a class="button button-primary" href={pathTo('begin')}>
          Make the first one
        </a>
      ) : (
        <p>Somebody with the role admin can make one.</p>
      )}
    </Empty>
  )
}

const types = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete'] as const
const typeChoices = [['', 'All'], ...types.map((type) => [type, type] as const)] as const

function OfSource({ id, known, hasMore }: { id: string; known: readonly SourceAnswer[]; hasMore: boolean }) {
  const source = useLive('GET /sources/{id}', { id }, 60_000)
  const filters = filtersNow()
  const choices = known.map(
    (each) => [each.id, each.name === each.id ? each.id : `${each.name} (${each.id})`] as const,
  )
  const isListed = known.some((each) => each.id === id)
  // A link to the page as it is now says which source it shows.
  useEffect(() => {
    if (query.value.get('source') === null) setQuery({ source: id })
  }, [id])
  return (
    <>
      <div class="filters filters-many">
        <Select
          label="Source"
          value={id}
          choices={isListed ? choices : [[id, id], ...choices]}
          change={(to) => setQuery({ source: to })}
          {...(hasMore && { hint: 'The first 200; name another one in the address.' })}
        />
        <Select
          label="Type"
          value={filters.type}
          choices={typeChoices}
          change={(type) => setQuery({ type })}
        />
        <LateField label="Event, exactly" value={filters.event} change={(event) => setQuery({ event })} />
        <LateField label="User" value={filters.user} change={(user) => setQuery({ user })} />
      </div>
      <Loaded live={source} what={`source ${id}`}>
        {(found) => (
          <div class="live">
            <Lazy load={sendCalls} what="the snippets" props={{ source: found }} />
            <div>
              {!found.enabled && (
                <Note tone="warn">This source is disabled: the collectors refuse its calls.</Note>
              )}
              {may('operator') ? (
                <Lazy
                  key={JSON.stringify([id, filters])}
                  load={calls}
                  what="its calls"
                  props={{ source: id, filters }}
                />
              ) : (
                <Note>
                  Calls have contents, which a token with the role reader does not show. An operator’s does.
                </Note>
              )}
            </div>
          </div>
        )}
      </Loaded>
    </>
  )
}
