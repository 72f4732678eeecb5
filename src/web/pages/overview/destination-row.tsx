import { pathTo } from '../../../console/page-paths.ts'
import { now } from '../../app/clock.ts'
import { may } from '../../app/session.ts'
import type { DestinationSummary } from '../../api/routes.ts'
import { DestinationBadge } from '../../components/badge.tsx'
import { countOf, wordsOf } from '../../components/figures.ts'
import { sentence } from '../../components/notices.tsx'
import { Ago, Since } from '../../components/time.tsx'
import { Row } from './problem-row.tsx'
import type { Act } from './problems.ts'

export const DestinationLink = ({ destination: { id, name } }: { destination: DestinationSummary }) => (
  <a href={pathTo('destination', { id })}>{name}</a>
)

/** A destination whose calls are not sent, or not to all of its URLs. */
export function DestinationRow({
  destination,
  act,
}: {
  destination: DestinationSummary
  act: (what: Act) => void
}) {
  const { state, pause, urls, queued } = destination
  const troubled = urls.filter(({ breaker, gone }) => gone || (breaker !== null && breaker !== 'closed'))
  return (
    <Row
      badge={<DestinationBadge state={state} />}
      title={<DestinationLink destination={destination} />}
      text={
        <>
          {state === 'paused' && pause && (
            <p>
              Its calls are held, <Since at={pause.since} />
              {pause.until === null ? (
                ' and until somebody resumes it.'
              ) : (
                <>
                  ; it goes on <Ago at={pause.until} />.
                </>
              )}
            </p>
          )}
          {state !== 'paused' && troubled.map((url) => <UrlText key={url.urlId} url={url} />)}
          {queued > 0 && <p>{countOf(queued, 'attempt')} wait in forwarders.</p>}
        </>
      }
    >
      {state === 'paused' && may('operator') && (
        <button type="button" class="button" onClick={() => act('resume')}>
          Resume
        </button>
      )}
      {state === 'gone' && may('admin') && (
        <button type="button" class="button" onClick={() => act('try_again')}>
          Try again
        </button>
      )}
      {(state === 'down' || state === 'troubled') && may('operator') && (
        <button type="button" class="button" onClick={() => act('pause')}>
          Pause
        </button>
      )}
    </Row>
  )
}

type UrlState = DestinationSummary['urls'][number]

/** Since when a URL is in trouble, and how it answered last. */
function UrlText({ url: state }: { url: UrlState }) {
  const { url, gone, goneAt, downSince, lastFailure, pausedUntil } = state
  return (
    <p>
      <span class="id">{url}</span>
      {gone && goneAt !== null && (
        <>
          {' '}
          answered 410 <Ago at={goneAt} />.
        </>
      )}
      {!gone && downSince !== null && (
        <>
          {' '}
          down <Since at={downSince} />.
        </>
      )}
      {!gone && lastFailure && (
        <>
          {' '}
          {sentence(lastFailure.detail ?? wordsOf(lastFailure.outcome)).slice(0, -1)}{' '}
          <Ago at={lastFailure.at} />.
        </>
      )}
      {pausedUntil !== null && Date.parse(pausedUntil) > now.value && (
        <>
          {' '}
          The next attempt comes <Ago at={pausedUntil} />.
        </>
      )}
    </p>
  )
}
