import { useEffect, useState } from 'preact/hooks'
import { useLive } from '../api/live.ts'
import { useLongRequest } from '../api/request.ts'
import type { IndexProgressLine, SampleAnswer } from '../api/routes.ts'
import { Dialog } from './dialog.tsx'
import { useEvents } from './events.ts'
import { exampleCall } from './example-call.ts'
import { Choice, Select, TextArea } from './fields.tsx'
import { countText, msText, wordsOf } from './figures.ts'
import { Failure, Loading } from './notices.tsx'
import { Badge, LongText } from './text.tsx'
import { requestText } from './request-text.ts'

export interface TestDialogProps {
  /** The destination: for people, and for the route that tests one that is saved. */
  id: string
  /** One that is not saved yet, as a request to create it has it. */
  draft?: Record<string, unknown>
  sourceIds: readonly string[]
  close: () => void
}

const kinds = [
  ['sample', 'A sample'],
  ['recent', 'A recent call'],
  ['event', 'An event'],
  ['own', 'A call of your own'],
] as const
type Kind = (typeof kinds)[number][0]

/** What is sent; null while it is not chosen, or no JSON. */
type Terms = { call?: unknown; messageId?: string } | null

const ownCall = JSON.stringify(
  { type: 'track', userId: 'postrider-test', event: 'Order Completed', properties: { total: 12.5 } },
  null,
  2,
)

/** Composes a test: which call, the request that it becomes at each URL, and then how each answered. */
export function TestDialog({ id, draft, sourceIds, close }: TestDialogProps) {
  const [kind, setKind] = useState<Kind>('sample')
  const [messageId, setMessageId] = useState('')
  const [text, setText] = useState(ownCall)
  const [sent, setSent] = useState({ key: '', count: 0 })
  const settled = useSettled(text)
  const parsed = parsedCall(settled)
  const isText = kind === 'own' || kind === 'event'
  const terms: Terms =
    kind === 'sample' ? {} : isText ? parsed && { call: parsed } : messageId === '' ? null : { messageId }
  const key = JSON.stringify(terms)
  // Another call was not sent yet.
  const count = sent.key === key ? sent.count : 0
  const isReady = terms !== null && (!isText || text === settled)
  return (
    <Dialog title={`Test of ${id}`} isWide close={close}>
      <Choice
        label="What is sent"
        value={kind}
        choices={draft ? kinds.filter(([each]) => each !== 'recent') : kinds}
        choose={setKind}
      />
      <div class="composer">
        {kind === 'sample' && (
          <p class="faint">A track call “Postrider Test”, which every destination can get.</p>
        )}
        {kind === 'recent' && <Recent id={id} value={messageId} change={setMessageId} />}
        {kind === 'event' && <Events sourceIds={sourceIds} choose={setText} />}
        {isText && (
          <TextArea
            label="Call, as SDKs send it"
            rows={9}
            value={text}
            change={setText}
            fault={parsed === null ? 'This is no JSON object.' : undefined}
          />
        )}
      </div>
      {terms !== null && (
        <>
          <Requests key={key} id={id} draft={draft} terms={terms} />
          <div aria-live="polite">
            {count > 0 && <Answers key={count} id={id} draft={draft} terms={terms} />}
          </div>
        </>
      )}
      <div class="dialog-buttons">
        <button type="button" class="button" onClick={close}>
          Close
        </button>
        <button
          type="button"
          class="button button-primary"
          disabled={!isReady}
          onClick={() => setSent({ key, count: count + 1 })}
        >
          {count === 0 ? 'Send it' : 'Send again'}
        </button>
      </div>
    </Dialog>
  )
}

function parsedCall(text: string): object | null {
  try {
    const call = JSON.parse(text) as unknown
    return typeof call === 'object' && call !== null && !Array.isArray(call) ? call : null
  } catch {
    return null
  }
}

const quietMs = 400

/** A text once nobody has typed for a moment. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(text), quietMs)
    return () => window.clearTimeout(timer)
  }, [text])
  return settled
}

type Tested = Pick<TestDialogProps, 'id'> & { draft: TestDialogProps['draft']; terms: object }

/** Asks once, for as long as it is shown. */
function useTest({ id, draft, terms }: Tested, dryRun: boolean) {
  const body = { ...draft, ...terms, dryRun }
  return useLive(draft ? 'POST /destinations/test' : 'POST /destinations/{id}/test', { id, body }, 0)
}

function Requests(tested: Tested) {
  const { data, failure } = useTest(tested, true)
  if (failure) return <Failure failure={failure} />
  if (data === null) return <Loading what="the request" />
  return (
    <details open={data.data.length === 1}>
      <summary>As it goes out</summary>
      {data.data.map(({ number, request: sent }) => (
        <LongText key={number} text={requestText(sent)} what={`request to URL ${number}`} />
      ))}
    </details>
  )
}

function Answers(tested: Tested) {
  const { data, failure } = useTest(tested, false)
  if (failure) return <Failure failure={failure} />
  if (data === null) return <Loading what="the answer" />
  return (
    <ul class="outcomes">
      {data.data.map((each) => (
        <AnswerOf key={each.number} answer={each} />
      ))}
    </ul>
  )
}

function AnswerOf({
  answer: { number, request: sent, outcome, status, durationMs, detail, response },
}: {
  answer: SampleAnswer['data'][number]
}) {
  return (
    <li>
      <Badge tone={outcome === 'success' ? 'good' : 'bad'} text={wordsOf(outcome!)} />
      <div>
        <p class="id">{sent.url}</p>
        <p class="faint foreign">
          {status !== null && `Status ${status}, `}
          {msText(durationMs!)}
          {detail !== null && detail !== `status ${status}` && ` · ${detail}`}
        </p>
        {response !== null && response !== '' && (
          <LongText text={response} what={`response of URL ${number}`} />
        )}
      </div>
    </li>
  )
}

/** One of the newest calls that it gets. */
function Recent({ id, value, change }: { id: string; value: string; change: (to: string) => void }) {
  const { data, failure } = useLive('POST /destinations/{id}/preview', { id, body: {} }, 0)
  const first = data?.data[0]?.messageId
  useEffect(() => {
    if (value === '' && first !== undefined) change(first)
  }, [first])
  if (failure) return <Failure failure={failure} />
  if (data === null) return <Loading what="the newest calls" />
  if (data.data.length === 0) return <p class="faint">None of the newest calls would get to it.</p>
  return (
    <Select
      label="Call"
      value={value}
      change={change}
      choices={data.data.map(({ messageId, type, event }) => [messageId, `${event ?? type} · ${messageId}`])}
    />
  )
}

/** Makes the call of an event that came in. */
function Events({ sourceIds, choose }: { sourceIds: readonly string[]; choose: (text: string) => void }) {
  const { events, failure } = useEvents(sourceIds, true)
  const [chosen, setChosen] = useState(0)
  if (failure) return <Failure failure={failure} />
  if (events === null) return <Loading what="events" />
  if (events.length === 0) return <p class="faint">No track call of its sources came in yet.</p>
  return (
    <>
      <Select
        label="Event"
        value={String(chosen)}
        change={(to) => setChosen(Number(to))}
        choices={events.map(({ name, calls }, index) => [String(index), `${name} · ${countText(calls)}`])}
        hint="Its fields are those that came in, with values made up."
      />
      <Fields key={chosen} event={events[chosen]!} choose={choose} />
    </>
  )
}

function Fields({
  event: { sourceId, name },
  choose,
}: {
  event: { sourceId: string; name: string }
  choose: (text: string) => void
}) {
  const asked = { query: { source: sourceId, type: 'track', name } }
  const { data, failure } = useLongRequest<'GET /events/fields', IndexProgressLine>(
    'GET /events/fields',
    asked,
  )
  useEffect(() => {
    if (data) choose(exampleCall(name, data.fields))
  }, [data])
  return failure && <Failure failure={failure} />
}
