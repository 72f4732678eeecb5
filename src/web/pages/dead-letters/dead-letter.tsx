import { useState } from 'preact/hooks'
import { pathTo } from '../../../console/page-paths.ts'
import { useLive } from '../../api/live.ts'
import type { WholeDeadLetter } from '../../api/routes.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { ExchangeText } from '../../components/exchange.tsx'
import { countText, msText, wordsOf } from '../../components/figures.ts'
import { Note } from '../../components/notices.tsx'
import { ReplaysIfAny } from '../../components/replays-if-any.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { LongText, MessageLink } from '../../components/text.tsx'
import { Ago, At } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'
import type { PageProps } from '../page-props.ts'
import { SentAgainText } from './sent-again.tsx'
import { useReplays } from './filters.ts'
import { ReplayDialog } from './replay-dialog.tsx'

/** All that is known of one dead letter. */
export function DeadLetter({ params }: PageProps) {
  const id = params.id!
  const live = useLive('GET /dead-letters/{id}', { id }, 0)
  const [isAsked, ask] = useState(false)
  // By itself: the index that knows may have much to read first.
  const marked = useLive('GET /dead-letters/{id}', { id, query: { replays: true } }, 15_000)
  const sent = marked.data?.sentAgain ?? null
  const isDone = sent?.state === 'delivered'
  const replays = useReplays()
  return (
    <>
      <PageTitle
        title={`Dead letter ${id}`}
        above={<a href={pathTo('deadLetters')}>Dead letters</a>}
        curl={{ route: 'GET /dead-letters/{id}', asked: { id } }}
      >
        {may('operator') && live.data && (
          <button type="button" class={isDone ? 'button' : 'button button-primary'} onClick={() => ask(true)}>
            {isDone ? 'Replay it once more' : 'Replay it'}
          </button>
        )}
      </PageTitle>
      <ReplaysIfAny live={replays} max={1} />
      {sent && (
        <Note>
          <p>
            It was sent again <Ago at={sent.at} />: <SentAgainText sent={sent} />.
          </p>
        </Note>
      )}
      <Loaded live={live} what={`dead letter ${id}`}>
        {(data) => <Known data={data} />}
      </Loaded>
      {isAsked && (
        <ReplayDialog
          choice={{ deadLetters: { ids: [id] } }}
          what={`dead letter ${id}`}
          started={replays.reload}
          close={() => ask(false)}
        />
      )}
    </>
  )
}

type Bytes = { text: string } | { base64: string }

function Known({ data }: { data: WholeDeadLetter }) {
  const { delivery, origin, detail, reason, failedAt, raw, value } = data
  return (
    <>
      <dl class="pairs card padded">
        <dt>Failed</dt>
        <dd>
          <At at={failedAt} /> (<Ago at={failedAt} />)
        </dd>
        <dt>Reason</dt>
        <dd>{wordsOf(reason ?? 'unreadable')}</dd>
        {detail !== null && (
          <>
            <dt>Detail</dt>
            <dd class="foreign">{detail}</dd>
          </>
        )}
        {delivery && (
          <>
            <dt>Call</dt>
            <dd>
              <MessageLink messageId={delivery.messageId} />, {delivery.type}
            </dd>
            <dt>Source</dt>
            <dd class="id">{delivery.sourceId}</dd>
            <dt>Destination</dt>
            <dd>
              <a href={pathTo('destination', { id: delivery.destinationId })}>{delivery.destinationId}</a>
            </dd>
            <dt>Attempts</dt>
            <dd>
              {countText(delivery.attempts)}
              {delivery.firstAttemptAt !== null && (
                <>
                  , the first <Ago at={delivery.firstAttemptAt} />
                </>
              )}
            </dd>
          </>
        )}
        {origin && (
          <>
            <dt>From</dt>
            <dd class="id">
              {origin.topic} partition {origin.partition} offset {origin.offset}
            </dd>
          </>
        )}
      </dl>
      {delivery && <Attempts delivery={delivery} />}
      {delivery?.lastResponse && (
        <Part
          title={`Last response: ${delivery.lastResponse.status} after ${msText(delivery.lastResponse.durationMs)}`}
          bytes={delivery.lastResponse.body}
        />
      )}
      {delivery?.lastExchange && (
        <ExchangeText {...delivery.lastExchange} who={`URL ${delivery.lastExchange.endpointId}`} />
      )}
      {delivery && data.omittedBytes === null && <Part title="Body" bytes={delivery.body} />}
      {raw && <Part title="The record" bytes={raw} />}
      {value && <Part title="The record" bytes={value} />}
    </>
  )
}

type Delivery = NonNullable<WholeDeadLetter['delivery']>

function Attempts({ delivery }: { delivery: Delivery }) {
  if (delivery.outcomes.length === 0) return null
  return (
    <section class="section" aria-labelledby="attempts-title">
      <div class="section-head">
        <h2 id="attempts-title">Last attempt at each URL</h2>
      </div>
      <Table
        label="Outcomes by URL"
        columns={columns}
        rows={delivery.outcomes}
        keyOf={({ endpointId }) => endpointId}
      />
    </section>
  )
}

const columns: Column<Delivery['outcomes'][number]>[] = [
  { head: 'URL', isName: true, cell: ({ endpointId }) => <span class="id">{endpointId}</span> },
  { head: 'When', moves: 'narrow', cell: ({ at }) => <At at={at} /> },
  { head: 'Outcome', cell: ({ kind, status }) => status ?? wordsOf(kind) },
  { head: 'Duration', isNumber: true, cell: ({ durationMs }) => msText(durationMs) },
  {
    head: 'Detail',
    moves: 'narrow',
    // The status is said already.
    cell: ({ detail, status }) => (
      <span class="foreign">{status !== null && detail === `status ${status}` ? '' : detail}</span>
    ),
  },
]

/** Bytes, as text where they are; shown when somebody asks. */
function Part({ title, bytes }: { title: string; bytes: Bytes }) {
  const text = 'text' in bytes ? bytes.text : bytes.base64
  return (
    <details class="section part">
      <summary>
        <h2>{title}</h2>
        <span class="faint">
          {countText(text.length)} characters{'base64' in bytes && ' of base64: it is no text'}
        </span>
      </summary>
      {text === '' ? <p class="faint">Empty.</p> : <LongText text={text} what={title} />}
    </details>
  )
}
