import { useEffect, useState } from 'preact/hooks'
import { linkTo } from '../../../console/page-paths.ts'
import { useLongRequest } from '../../api/request.ts'
import type { MessageAnswer } from '../../api/routes.ts'
import { query, setQuery } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { Select } from '../../components/fields.tsx'
import { countText } from '../../components/figures.ts'
import { Folded } from '../../components/folded.tsx'
import { Icon } from '../../components/icon.tsx'
import { Lazy } from '../../components/lazy.tsx'
import { Note, NotKnown } from '../../components/notices.tsx'
import { CopyButton, LongText } from '../../components/text.tsx'
import { Ago, At } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'
import { Destinations, hasDelivery } from './destinations.tsx'
import type { IndexedRecords } from './search.ts'
import { SendAgainDialog, SentAgain } from './send-again.tsx'
import { AllSteps } from './steps.tsx'
import { TimePlot } from './time-plot.tsx'
import type { CallCopy } from './words.ts'

// A script of its own: the page of an attempt shows it, too.
const responseTexts = () =>
  import('../../components/responses.tsx').then(({ ResponseTexts }) => ResponseTexts)

interface CallLifeProps {
  life: MessageAnswer
  /** What was looked for, where that is a delivery. */
  deliveryId: string | null
  /** Asks for it again; while `isReloading` it is being asked for. */
  reload: () => void
  isReloading: boolean
}

const placeOf = ({ received: { partition, offset } }: CallCopy): string => `${partition}-${offset}`
/** While something of it is unfinished it is read again. */
const movingMs = 5_000

/** One call: what it is, where it went, when what happened. */
export function CallLife({ life, deliveryId, reload, isReloading }: CallLifeProps) {
  const { messageId, copies, omitted } = life
  const [isAsked, ask] = useState(false)
  const chosen = query.value.get('copy')
  const copy = copies.find((each) => placeOf(each) === chosen) ?? copies.at(-1)!
  const replay = query.value.get('replay')
  const isMoving = copies.some(({ deliveries }) =>
    deliveries.some(({ state }) => state === 'open' || state === 'waiting'),
  )
  useEffect(() => {
    if (!isMoving || isReloading) return
    const timer = window.setTimeout(reload, movingMs)
    return () => window.clearTimeout(timer)
  }, [isMoving, isReloading])
  // A record that cannot be delivered is sent again as a dead letter, if at all.
  const canSend =
    may('operator') && copies.some(({ call, record }) => call !== null && record?.state !== 'dead_letter')
  return (
    <>
      <section class="section" aria-labelledby="call-title">
        <div class="section-head">
          <h2 id="call-title">The call</h2>
          {canSend && (
            <button type="button" class="button button-primary" onClick={() => ask(true)}>
              <Icon name="send" />
              Send again to …
            </button>
          )}
        </div>
        <About messageId={messageId} copy={copy} />
      </section>
      {copies.length > 1 && (
        <div class="filters">
          <Select
            label={`Copies: it lies in Kafka ${countText(copies.length + omitted)} times`}
            value={placeOf(copy)}
            choices={copies.map((each, index) => [placeOf(each), copyText(each, index + omitted + 1)])}
            change={(place) => setQuery({ copy: place })}
            hint={omitted > 0 ? `The oldest ${countText(omitted)} are not shown.` : 'Each was worked on.'}
          />
        </div>
      )}
      {replay !== null && <SentAgain id={replay} life={life} reload={reload} isReloading={isReloading} />}
      {deliveryId !== null && !copies.some((each) => hasDelivery(each, deliveryId)) && (
        <Note tone="warn">
          The call is known. No delivery of it has the id <span class="id">{deliveryId}</span>.
        </Note>
      )}
      {copy.erased ? (
        <Note>A deletion request covers this call: nothing more of it is shown.</Note>
      ) : (
        <>
          <Destinations copy={copy} deliveryId={deliveryId} />
          <TimePlot copy={copy} />
          <AllSteps copy={copy} />
          <Answers messageId={messageId} copy={copy} />
          <CallBody messageId={messageId} copy={copy} />
        </>
      )}
      {isAsked && <SendAgainDialog life={life} close={() => ask(false)} />}
    </>
  )
}

const copyText = ({ received: { appendedAt, partition, offset } }: CallCopy, number: number): string =>
  `${number}: ${appendedAt ?? 'its record is gone'}, partition ${partition} offset ${offset}`

function About({ messageId, copy: { call, received, erased } }: { messageId: string; copy: CallCopy }) {
  const { receivedAt, receivedBy, appendedAt, topic, partition, offset } = received
  const at = receivedAt ?? appendedAt
  return (
    <dl class="pairs card padded">
      <dt>messageId</dt>
      <dd class="with-button">
        <span class="id find-id" title={messageId}>
          {messageId}
        </span>
        <CopyButton text={messageId} what="the messageId" />
      </dd>
      {call && (
        <>
          <dt>Call</dt>
          <dd>
            <span class={`call-type call-${call.type}`}>{call.type}</span>{' '}
            <strong class="foreign">{call.event ?? call.name}</strong>
          </dd>
          <dt>Source</dt>
          <dd class="id">{call.sourceId}</dd>
          <dt>User</dt>
          <dd>
            <User call={call} />
          </dd>
          <dt>Happened</dt>
          <dd>
            <At at={call.timestamp} />, as its sender says
          </dd>
        </>
      )}
      <dt>Received</dt>
      <dd>
        {at === null ? (
          <NotKnown why="Its record is there no more" />
        ) : (
          <>
            <At at={at} /> (<Ago at={at} />)
          </>
        )}
        {receivedBy !== null && (receivedBy === 'collector' ? ', by a collector' : ', from a producer')}
      </dd>
      <dt>In Kafka</dt>
      <dd class="id">
        {topic} partition {partition} offset {offset}
        {call === null && !erased && '; its record is there no more'}
      </dd>
    </dl>
  )
}

function User({ call: { userId, anonymousId } }: { call: NonNullable<CallCopy['call']> }) {
  if (!may('operator')) return <span class="faint">shown to operators only</span>
  const id = userId ?? anonymousId
  if (id === null) return <span class="faint">none</span>
  return (
    <>
      <a class="id find-id" title={id} href={linkTo('find', { q: id, as: 'user' })}>
        {id}
      </a>
      {userId === null && ' (anonymous)'}
    </>
  )
}

/** Requests, and what receivers answered: read when somebody asks, by those who may. */
function Answers({ messageId, copy }: { messageId: string; copy: CallCopy }) {
  const isAttempted = copy.steps.some(({ what }) => what === 'attempt')
  if (!isAttempted || copy.call === null || !may('operator')) return null
  const { partition, offset } = copy.received
  return (
    <Folded
      title="Requests and what receivers answered"
      hint="of attempts that failed; with LEDGER=all of all"
    >
      <Lazy
        key={`${partition} ${offset}`}
        load={responseTexts}
        what="the attempts"
        props={{ messageId, place: { partition, offset } }}
      />
    </Folded>
  )
}

/** What the call says: read when somebody asks, by those who may. */
export function CallBody({ messageId, copy }: { messageId: string; copy: CallCopy }) {
  if (copy.call === null) return null
  if (!may('operator'))
    return (
      <div class="section">
        <Note>What the call says is shown to operators; this token has the role reader.</Note>
      </div>
    )
  const { partition, offset } = copy.received
  return (
    <Folded title="What it says" hint="as it was sent">
      <Text key={`${partition} ${offset}`} messageId={messageId} place={{ partition, offset }} />
    </Folded>
  )
}

function Text({ messageId, place }: { messageId: string; place: { partition: number; offset: number } }) {
  const live = useLongRequest<'GET /messages/{id}/body', IndexedRecords>('GET /messages/{id}/body', {
    id: messageId,
    query: place,
  })
  return (
    <Loaded live={live} what="the call">
      {({ text }) => <LongText text={text} what="call" />}
    </Loaded>
  )
}
