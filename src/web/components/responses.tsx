import { useLongRequest } from '../api/request.ts'
import { msText } from './figures.ts'
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
    <Loaded live={live} what="the responses">
      {({ responses }) =>
        responses.filter(isShown).length === 0 ? (
          <Empty title="No response is kept any more." />
        ) : (
          <>
            {responses.filter(isShown).map(({ at, destinationId, urlId, status, durationMs, body }) => (
              <div key={`${at} ${destinationId} ${urlId}`}>
                <p>
                  <At at={at} />: {destinationId}, URL {urlId}, answered <strong>{status}</strong> after{' '}
                  {msText(durationMs)}
                  {'base64' in body && '; its body is no text, and shown as base64'}
                </p>
                <LongText
                  text={'text' in body ? body.text : body.base64}
                  what={`Response of ${destinationId}, URL ${urlId}, at ${at}`}
                />
              </div>
            ))}
          </>
        )
      }
    </Loaded>
  )
}
