import { useEffect, useRef, useState } from 'preact/hooks'
import { linkTo, pathTo } from '../../../console/page-paths.ts'
import { durationText } from '../../../core/duration.ts'
import { useLive } from '../../api/live.ts'
import type { UserMessageAnswer } from '../../api/routes.ts'
import { query, setQuery } from '../../app/address.ts'
import { isLimited, may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { deliveryStates, stateNames, stateTones } from '../../components/delivery-state.ts'
import { Select } from '../../components/fields.tsx'
import { countOf } from '../../components/figures.ts'
import { Icon } from '../../components/icon.tsx'
import { LateField } from '../../components/late-field.tsx'
import { Empty, Failure, Loading, Stale, Progress, NoValue } from '../../components/notices.tsx'
import { PeriodFields } from '../../components/period.tsx'
import { PagedTable, type Column } from '../../components/table.tsx'
import { Badge, MessageLink } from '../../components/text.tsx'
import { Ago } from '../../components/time.tsx'
import { CallLife } from './call-life.tsx'
import { candidatesFor, useCallSearch, type Candidate, type CallSearch } from './search.ts'

/** The life of a call, by whatever id somebody has of it. */
export function FindCall() {
  const text = query.value.get('q') ?? ''
  const [times, setTimes] = useState(0)
  const isUser = query.value.get('as') === 'user'
  return (
    <>
      <PageTitle
        title="Find a call"
        curl={
          text === ''
            ? undefined
            : { route: isUser ? 'GET /users/{id}/messages' : 'GET /messages/{id}', asked: { id: text } }
        }
      />
      <Box text={text} again={() => setTimes(times + 1)} />
      {text === '' ? <Nothing /> : <Result key={`${times} ${isUser} ${text}`} text={text} isUser={isUser} />}
    </>
  )
}

/** The one field. What is looked for is in the URL; the same text once more is looked for again. */
function Box({ text, again }: { text: string; again: () => void }) {
  const input = useRef<HTMLInputElement>(null)
  const [given, setGiven] = useState(text)
  useEffect(() => setGiven(text), [text])
  useEffect(() => {
    if (text === '') input.current!.focus()
  }, [])
  const submit = (event: Event) => {
    event.preventDefault()
    // A link may name an id that begins with a space; somebody who pastes one does not mean it.
    const q = given === text ? text : given.trim().toWellFormed()
    if (q === text) return again()
    // What was chosen of another call means nothing here.
    setQuery({ q, as: null, copy: null, replay: null, ...noFilters }, { replace: false })
  }
  return (
    <form class="find-box" role="search" aria-label="Find a call" onSubmit={submit}>
      <label for="find-q">messageId, delivery id{may('operator') ? ' or userId' : ''}</label>
      <input
        ref={input}
        id="find-q"
        type="search"
        autocomplete="off"
        spellcheck={false}
        value={given}
        onInput={(event) => setGiven(event.currentTarget.value)}
      />
      <button type="submit" class="button button-primary">
        <Icon name="find" />
        Find
      </button>
    </form>
  )
}

function Nothing() {
  return (
    <Empty title="Where is my call?">
      <p>
        Type the <code>messageId</code> that the sender chose, or the <code>Idempotency-Key</code> that a
        receiver got, which is the delivery’s id.
        {may('operator') && ' A userId lists the calls of that user, the newest first.'}
      </p>
      <p>
        No id at hand? <a href={pathTo('live')}>Live</a> shows calls as they come in, and{' '}
        <a href={pathTo('deadLetters')}>Dead letters</a> those that failed finally.
      </p>
    </Empty>
  )
}

function Result({ text, isUser }: { text: string; isUser: boolean }) {
  const candidates = candidatesFor(text, isUser, may('operator'))
  const search = useCallSearch(candidates)
  const { found, candidate, failure, loadedAt, reload } = search
  if (found === null)
    return failure ? <Failure failure={failure} retry={reload} /> : <Searching search={search} />
  return (
    <>
      <Stale failure={failure} loadedAt={loadedAt} />
      <p class="hidden" role="status">
        {found.is === 'call' ? 'The call was found.' : found.is === 'user' ? 'Calls of the user.' : ''}
      </p>
      {found.is === 'call' && (
        <CallLife
          life={found.life}
          deliveryId={candidate.kind === 'delivery' ? text : null}
          reload={reload}
          isReloading={search.isRunning}
        />
      )}
      {found.is === 'user' && <UserCalls userId={text} />}
      {found.is === 'none' && <NotFound text={text} candidates={candidates} search={search} />}
      {found.is === 'call' && may('operator') && (
        <p class="find-other">
          <a href={linkTo('find', { q: text, as: 'user' })}>Look for calls of a user with this id instead</a>
        </p>
      )}
    </>
  )
}

const lookingFor: Record<Candidate['kind'], string> = {
  call: 'a call with this messageId',
  delivery: 'the call of a delivery with this id',
  user: 'calls of a user with this id',
}

/** What the search does, which may take long where the index has much to read. */
function Searching({ search: { candidate, progress } }: { search: CallSearch }) {
  if (progress === null || progress.total === 0) return <Loading what={lookingFor[candidate.kind]} />
  return (
    <div class="card running" role="status">
      <p>Looking for {lookingFor[candidate.kind]}.</p>
      <Progress label="Records read into the index" done={progress.done} total={progress.total} />
      <p class="hint">
        The index follows Kafka when it is asked. The first time takes as long as reading all that is kept.
        The search ends when you leave this page; what was read stays in the index.
      </p>
    </div>
  )
}

const shownLength = 80
/** Topics by the end of their names, with what they hold for people. */
const keptIn = [
  ['analytics.calls', 'calls'],
  ['webhooks.dead-letters', 'dead letters'],
  ['webhooks.deliveries', 'the ledger'],
] as const

/** Says that nothing is known, what was looked for, and how far. */
export function NotFound({
  text,
  candidates,
  search,
}: {
  text: string
  candidates: readonly Candidate[]
  search: CallSearch
}) {
  const kinds = new Set(candidates.map(({ kind }) => kind))
  const shown = text.length > shownLength ? `${text.slice(0, shownLength)}…` : text
  return (
    <Empty title={`Nothing is known of “${shown}”.`}>
      <div role="status" class="find-looked">
        <ul>
          {kinds.has('call') && <li>No call has this messageId.</li>}
          {kinds.has('delivery') && <li>No call has a delivery with this id.</li>}
          {kinds.has('user') && <li>No call is of a user with this id.</li>}
          {!may('operator') && <li>Users were not looked for: that takes the role operator.</li>}
        </ul>
        <Kept />
        <p>A call can be found as soon as it is in Kafka. One that no collector has accepted is not there.</p>
      </div>
      <button type="button" class="button" disabled={search.isRunning} onClick={search.reload}>
        {search.isRunning ? 'Looking …' : 'Look again'}
      </button>
    </Empty>
  )
}

/** How far back a search can look. */
function Kept() {
  const { data } = useLive('GET /infrastructure', {}, 0, !isLimited())
  const kept = keptIn.flatMap(([name, what]) => {
    const ms = data?.topics.find((topic) => topic.name.endsWith(name))?.retentionMs
    return typeof ms === 'number' && ms > 0 ? [`${what} for ${durationText(ms)}`] : []
  })
  return (
    <p>
      Every call, retry, dead letter and record of the ledger was looked through that Kafka holds now, as far
      back as the index of messages reaches (MESSAGE_INDEX_MB).
      {kept.length > 0 && ` It keeps ${kept.join(', ')}.`}
    </p>
  )
}

/** Another list begins at its first page. */
const noFilters = { event: null, outcome: null, since: null, until: null, cursor: null }

const outcomes = [['', 'any'], ...deliveryStates.map((state) => [state, stateNames[state]] as const)] as const
const periods = [
  ['1h', 'The last hour'],
  ['24h', 'The last 24 hours'],
  ['', 'All that are kept'],
] as const

/** The calls of one user, the newest first. */
export function UserCalls({ userId }: { userId: string }) {
  const value = (name: string) => query.value.get(name) ?? ''
  const [event, outcome, since, until] = ['event', 'outcome', 'since', 'until'].map(value) as [
    string,
    string,
    string,
    string,
  ]
  const isFiltered = [event, outcome, since, until].some((each) => each !== '')
  const choose = (changes: Record<string, string>) => setQuery({ ...changes, cursor: null })
  return (
    <section class="section" aria-labelledby="calls-title">
      <div class="section-head">
        <h2 id="calls-title" class="foreign">
          Calls of {userId}
        </h2>
        <p>As far back as Kafka keeps calls; those that a deletion request covers are left out.</p>
      </div>
      <div class="filters">
        <LateField label="Event, exactly" value={event} change={(to) => choose({ event: to })} />
        <Select
          label="What became of it"
          value={outcomes.some(([each]) => each === outcome) ? (outcome as (typeof outcomes)[number][0]) : ''}
          choices={outcomes}
          change={(to) => choose({ outcome: to })}
        />
        <PeriodFields
          label="Received"
          since={since}
          until={until}
          periods={periods}
          choose={(period) => choose({ ...period })}
        />
      </div>
      <PagedTable
        route="GET /users/{id}/messages"
        asked={{ id: userId, query: { event, outcome, since, until } }}
        what="calls"
        columns={columns}
        keyOf={({ partition, offset }) => `${partition} ${offset}`}
        empty={{ title: isFiltered ? 'No call of this user matches.' : 'No call is of a user with this id.' }}
        follows="none"
      />
    </section>
  )
}

const columns: Column<UserMessageAnswer>[] = [
  { head: 'Received', isName: true, cell: ({ receivedAt }) => <Ago at={receivedAt} /> },
  { head: 'Type', cell: ({ type }) => <span class={`call-type call-${type}`}>{type}</span> },
  {
    head: 'Event or name',
    cell: ({ event, name }) =>
      event !== null || name !== null ? (
        <span class="foreign">{event ?? name}</span>
      ) : (
        <NoValue why="It has none" />
      ),
  },
  { head: 'What became of it', moves: 'narrow', cell: (call) => <Ends call={call} /> },
  { head: 'Source', moves: 'medium', cell: ({ sourceId }) => <span class="id">{sourceId}</span> },
  { head: 'Call', moves: 'narrow', cell: ({ messageId }) => <MessageLink messageId={messageId} /> },
]

const maxEnds = 4

/** What became of a call: a word for each of its deliveries. */
function Ends({ call: { deliveries, record } }: { call: UserMessageAnswer }) {
  if (deliveries.length === 0)
    return record === null ? (
      <NoValue why="Not known" />
    ) : (
      <Badge tone={stateTones[record]} text={stateNames[record]} />
    )
  return (
    <span class="words">
      {deliveries.slice(0, maxEnds).map(({ destinationId, urlId, state }) => (
        <Badge
          key={`${destinationId} ${urlId}`}
          tone={stateTones[state]}
          text={`${destinationId}${urlId === null ? '' : ` ${urlId}`}: ${stateNames[state]}`}
        />
      ))}
      {deliveries.length > maxEnds && (
        <span class="faint">and {countOf(deliveries.length - maxEnds, 'more', 'more')}</span>
      )}
    </span>
  )
}
