import { useEffect, useRef } from 'preact/hooks'
import { useLongRequest } from '../../api/request.ts'
import type { AttemptAnswer, DestinationAnswer } from '../../api/routes.ts'
import { may } from '../../app/session.ts'
import { msText, wordsOf } from '../../components/figures.ts'
import { Icon } from '../../components/icon.tsx'
import { Lazy } from '../../components/lazy.tsx'
import { CopyButton, MessageLink } from '../../components/text.tsx'
import { At } from '../../components/time.tsx'
import { AttemptBadge } from './attempt-badge.tsx'

// A script of its own: the page of a call shows it, too.
const responseTexts = () =>
  import('../../components/responses.tsx').then(({ ResponseTexts }) => ResponseTexts)

interface AttemptPanelProps {
  attempt: AttemptAnswer
  destination: DestinationAnswer
  close: () => void
}

/** One attempt: all that is known of it, and what its receiver answered to the call. */
export function AttemptPanel({ attempt, destination, close }: AttemptPanelProps) {
  const { at, urlId, outcome, durationMs, attempt: round, messageId, deliveryId, detail } = attempt
  const heading = useRef<HTMLHeadingElement>(null)
  // Screen readers read on from here, and Tab goes on from here.
  useEffect(() => heading.current!.focus({ preventScroll: true }), [])
  const url = destination.urls.find(({ id }) => id === urlId)
  return (
    <section
      class="card panel"
      aria-labelledby="attempt-title"
      onKeyDown={({ key }) => key === 'Escape' && close()}
    >
      <div class="section-head">
        <h2 id="attempt-title" ref={heading} tabIndex={-1}>
          Attempt
        </h2>
        <button type="button" class="icon-button" aria-label="Close the attempt" onClick={close}>
          <Icon name="close" />
        </button>
      </div>
      <dl class="pairs">
        <dt>When</dt>
        <dd>
          <At at={at} />
        </dd>
        <dt>Outcome</dt>
        <dd>
          <AttemptBadge attempt={attempt} /> {wordsOf(outcome)}
          {durationMs !== null && ` after ${msText(durationMs)}`}
        </dd>
        {detail !== null && (
          <>
            <dt>Detail</dt>
            <dd class="foreign">{detail}</dd>
          </>
        )}
        {round !== null && (
          <>
            <dt>Attempt</dt>
            <dd>{round}</dd>
          </>
        )}
        <dt>URL</dt>
        <dd class="id">{url ? url.url : urlId}</dd>
        <dt>messageId</dt>
        <dd class="with-button">
          <MessageLink messageId={messageId} />
          <CopyButton text={messageId} what="the messageId" />
        </dd>
        {may('operator') && <OfCall messageId={messageId} />}
        <dt>Delivery</dt>
        <dd class="id">{deliveryId}</dd>
      </dl>
      {may('operator') && (
        <div class="section">
          <h3>What it answered to this call</h3>
          <Lazy
            load={responseTexts}
            what="the responses"
            props={{ messageId, of: { destinationId: destination.id, urlId } }}
          />
        </div>
      )}
    </section>
  )
}

/** What happened, and to whom: in the index of calls, which may have much to read first. */
function OfCall({ messageId }: { messageId: string }) {
  const { data, isRunning } = useLongRequest<'GET /messages/{id}', unknown>('GET /messages/{id}', {
    id: messageId,
  })
  const call = data?.copies.at(-1)?.call ?? null
  if (call === null)
    return (
      <>
        <dt>Call</dt>
        <dd class="faint">{isRunning ? 'Looking it up …' : 'not known any more'}</dd>
      </>
    )
  return (
    <>
      <dt>Call</dt>
      <dd>
        <span class={`call-type call-${call.type}`}>{call.type}</span>{' '}
        <strong class="foreign">{call.event ?? call.name}</strong>
      </dd>
      <dt>User</dt>
      <dd class="id">{call.userId ?? call.anonymousId ?? 'none'}</dd>
    </>
  )
}
