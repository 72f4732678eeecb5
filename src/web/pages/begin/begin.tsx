import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { linkTo, pathTo } from '../../../console/page-paths.ts'
import { useLive } from '../../api/live.ts'
import { ApiFailure, request } from '../../api/request.ts'
import type { DestinationAnswer, SourceAnswer } from '../../api/routes.ts'
import { query, setQuery } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { TextField } from '../../components/fields.tsx'
import { countOf } from '../../components/figures.ts'
import { Icon } from '../../components/icon.tsx'
import { Lazy } from '../../components/lazy.tsx'
import { Failure, Note, say } from '../../components/notices.tsx'
import { Loaded } from '../../components/views.tsx'

const sendCalls = () => import('../../components/send-calls.tsx').then(({ SendCalls }) => SendCalls)
const liveCalls = () => import('../../components/calls.tsx').then(({ Calls }) => Calls)

const followMs = 3_000
const askedSources = { query: { limit: 200 } }
/** Nothing has been delivered to it yet: whatever the ledger takes its calls for, none of them is sent twice. */
const everyKind = ['held', 'skipped', 'failed', 'delivered']
const noFilters = { type: '', event: '', user: '' }

/** From nothing to the first verified webhook: a source, its first call, a destination, its first delivery. */
export function Begin() {
  const sources = useLive('GET /sources', askedSources, 0)
  return (
    <>
      <PageTitle title="Your first webhook" above={<a href={pathTo('overview')}>Overview</a>} />
      {may('admin') ? (
        <Loaded live={sources} what="sources">
          {({ data }) => <Steps sources={data.filter(({ builtIn }) => !builtIn)} reload={sources.reload} />}
        </Loaded>
      ) : (
        <Note>It takes a token with the role admin.</Note>
      )}
    </>
  )
}

interface StepsProps {
  sources: readonly SourceAnswer[]
  reload: () => void
}

function Steps({ sources, reload }: StepsProps) {
  const chosen = query.value.get('source')
  const source = sources.find(({ id }) => id === chosen) ?? (sources.length === 1 ? sources[0] : undefined)
  const taken = { id: source?.id ?? '', query: { lastDay: true } }
  const { data: counted } = useLive('GET /sources/{id}', taken, followMs, source !== undefined)
  const accepted = counted?.lastDay?.accepted ?? 0
  const destinationId = query.value.get('destination')
  return (
    <ol class="begin">
      <Step title="A source: where calls come from" isDone={source !== undefined}>
        {source === undefined ? (
          <ChooseSource sources={sources} reload={reload} />
        ) : (
          <p>
            <a href={pathTo('source', { id: source.id })}>{source.name}</a> takes calls.
          </p>
        )}
      </Step>
      {source !== undefined && (
        <>
          <Step title="Its first call" isDone={accepted > 0}>
            <div class="live">
              <Lazy load={sendCalls} what="the snippets" props={{ source, isOpen: true }} />
              <div>
                <Lazy load={liveCalls} what="its calls" props={{ source: source.id, filters: noFilters }} />
              </div>
            </div>
            {accepted > 0 && <p>{countOf(accepted, 'call')} came in within 24 hours.</p>}
          </Step>
          <Step title="A destination: where calls go" isDone={destinationId !== null}>
            {destinationId === null ? (
              <ChooseDestination source={source} />
            ) : (
              <p>
                Calls go to <a href={pathTo('destination', { id: destinationId })}>{destinationId}</a>.
              </p>
            )}
          </Step>
          {destinationId !== null && <Delivered id={destinationId} />}
        </>
      )}
    </ol>
  )
}

function Step({ title, isDone, children }: { title: string; isDone: boolean; children: ComponentChildren }) {
  return (
    <li class={isDone ? 'card padded is-done' : 'card padded'}>
      <h2>
        {title}
        {isDone && (
          <span class="begin-done">
            <Icon name="check" />
            done
          </span>
        )}
      </h2>
      {children}
    </li>
  )
}

function ChooseSource({ sources, reload }: Pick<StepsProps, 'sources' | 'reload'>) {
  const [name, setName] = useState('Website')
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const id = name
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, '-')
    .slice(0, 64)
  const make = async (event: Event) => {
    event.preventDefault()
    setFailure(null)
    try {
      await request('POST /sources', { body: { id, name } })
      setQuery({ source: id })
      reload()
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      setFailure(error)
    }
  }
  return (
    <>
      {sources.length > 0 && (
        <p class="words">
          Use one that there is:
          {sources.map((each) => (
            <button
              key={each.id}
              type="button"
              class="button button-small"
              onClick={() => setQuery({ source: each.id })}
            >
              {each.name}
            </button>
          ))}
        </p>
      )}
      <form onSubmit={make}>
        <TextField
          label="Name"
          value={name}
          change={setName}
          hint={`A website, an app, a server. Its id is ${id}.`}
        />
        {failure && <Failure failure={failure} />}
        <button type="submit" class="button button-primary">
          Make the source
        </button>
      </form>
    </>
  )
}

function ChooseDestination({ source: { id, destinationIds } }: { source: SourceAnswer }) {
  return (
    <>
      <p>Its address, the events that it gets, and a secret with the code that verifies it.</p>
      <div class="form-actions">
        <a class="button button-primary" href={linkTo('newDestination', { source: id, from: 'begin' })}>
          Make a destination
        </a>
        {destinationIds.map((each) => (
          <button key={each} type="button" class="button" onClick={() => setQuery({ destination: each })}>
            Use {each}
          </button>
        ))}
      </div>
    </>
  )
}

/** The first delivery. Calls from before the destination was made were for none: a replay sends them to it. */
function Delivered({ id }: { id: string }) {
  const { data } = useLive('GET /destinations/{id}', { id }, 0)
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const [isSent, setSent] = useState(false)
  const now = useLive('GET /overview/destinations', { query: { id, window: '24h' } }, followMs)
  const found = now.data?.data[0]
  const delivered = found?.delivered ?? 0
  const send = async () => {
    setFailure(null)
    // At once: a second click would send all of it a second time.
    setSent(true)
    try {
      await request('POST /replays', { body: { destinationId: id, since: '1h', only: everyKind } })
      say(`What came in within an hour is sent to ${id}`)
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      setFailure(error)
      setSent(false)
    }
  }
  return (
    <Step title="The first webhook" isDone={delivered > 0}>
      {delivered > 0 ? (
        <Arrived destination={data} delivered={delivered} />
      ) : (
        <>
          <p>Send another call with the snippet above; or have those sent that came in already.</p>
          {found !== undefined && found.failed > 0 && (
            <Note tone="warn">
              {countOf(found.failed, 'attempt')} failed.{' '}
              <a href={`${pathTo('destination', { id })}?view=attempts`}>See why</a>
            </Note>
          )}
          {failure && <Failure failure={failure} />}
          <div class="form-actions">
            <button type="button" class="button button-primary" disabled={isSent} onClick={send}>
              Send what came in
            </button>
          </div>
          <p class="faint" role="status">
            Waiting for the first delivery …
          </p>
        </>
      )}
    </Step>
  )
}

function Arrived({ destination, delivered }: { destination: DestinationAnswer | null; delivered: number }) {
  return (
    <>
      <p role="status">
        {destination?.sharedSecret
          ? `Its receiver took ${countOf(delivered, 'call')}, each signed with its secret: the first verified webhook, where the receiver is one of the examples.`
          : `Its receiver took ${countOf(delivered, 'call')}. They are not signed.`}
      </p>
      <div class="form-actions">
        <a class="button" href={pathTo('overview')}>
          Overview
        </a>
        {destination && (
          <a class="button" href={pathTo('destination', { id: destination.id })}>
            What becomes of its calls
          </a>
        )}
      </div>
    </>
  )
}
