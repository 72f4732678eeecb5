import type { MessageResponses } from '../api/routes.ts'
import { useLongRequest } from '../api/request.ts'
import { ExchangeText } from './exchange.tsx'
import { msText, wordsOf } from './figures.ts'
import { Empty } from './notices.tsx'
import { LongText } from './text.tsx'
import { At } from './time.tsx'
import { Loaded } from './views.tsx'

/** Of one copy of the call, or of the newest; of all URLs, or of one. */
export function ResponseTexts({
  messageId,
  place = {},
  of,
}: {
  messageId: string
  place?: { partition?: number; offset?: number }
  of?: { destinationId: string; urlId: string }
}) {
  const live = useLongRequest<'GET /messages/{id}/responses', unknown>('GET /messages/{id}/responses', {
    id: messageId,
    query: { ...place },
  })
  const isShown = ({ destinationId, urlId }: { destinationId: string; urlId: string }) =>
    !of || (destinationId === of.destinationId && urlId === of.urlId)
  return (
    <Loaded live={live} what="the attempts">
      {({ responses }) =>
        responses.filter(isShown).length === 0 ? (
          <Empty title="No request or response is kept: nothing was sent, or it is too long ago." />
        ) : (
          <>
            {responses.filter(isShown).map((each) => (
              <AttemptTexts key={`${each.at} ${each.destinationId} ${each.urlId}`} {...each} />
            ))}
          </>
        )
      }
    </Loaded>
  )
}

function AttemptTexts({
  at,
  destinationId,
  urlId,
  outcome,
  status,
  durationMs,
  detail,
  body,
  ...exchange
}: MessageResponses['responses'][number]) {
  const who = `${destinationId}, URL ${urlId}, at ${at}`
  return (
    <div>
      <p>
        <At at={at} />: {destinationId}, URL {urlId},{' '}
        {status === null ? (
          <strong class="foreign">{detail ?? wordsOf(outcome ?? 'unknown')}</strong>
        ) : (
          <>
            answered <strong>{status}</strong>
          </>
        )}
        {durationMs !== null && ` after ${msText(durationMs)}`}
        {body && 'base64' in body && '; its body is no text, and shown as base64'}
      </p>
      <ExchangeText {...exchange} who={who} />
      {body && <LongText text={'text' in body ? body.text : body.base64} what={`Response of ${who}`} />}
    </div>
  )
}
