import { useLive } from '../../../api/live.ts'
import type { PreviewAnswer } from '../../../api/routes.ts'
import { requestText } from '../../../components/request-text.ts'
import { countOf } from '../../../components/figures.ts'
import { Failure } from '../../../components/notices.tsx'

interface PreviewProps {
  id: string
  /** What is to be changed, as a request has it. */
  body: Record<string, unknown>
}

/** What the requests of the newest calls become, before it is saved. */
export function RequestPreview({ id, body }: PreviewProps) {
  const { data: answer, failure } = useLive('POST /destinations/{id}/preview', { id, body }, 0)
  // Saving says which field is wrong, at that field.
  if (failure) return failure.fields.length > 0 ? null : <Failure failure={failure} />
  if (answer === null) return <p class="faint">Looking at the newest calls …</p>
  const { data, changed } = answer
  if (data.length === 0) return <p class="faint">None of the newest calls would get to it.</p>
  return (
    <section aria-label="Requests of the newest calls">
      <p role="status">
        {changed === 0
          ? `The requests of the newest ${countOf(data.length, 'call')} stay as they are.`
          : `Of the newest ${countOf(data.length, 'call')}, ${changed} have other requests:`}
      </p>
      {data
        .filter(({ isChanged }) => isChanged)
        .map(({ messageId, type, event, before, after }) => (
          <details key={messageId}>
            <summary>
              {event ?? type} <span class="id faint">{messageId}</span>
            </summary>
            <Requests title="Now" of={before} />
            <Requests title="After saving" of={after} />
          </details>
        ))}
    </section>
  )
}

function Requests({ title, of }: { title: string; of: PreviewAnswer['data'][number]['before'] }) {
  const { requests, refusal } = of
  return (
    <>
      <h3>{title}</h3>
      {refusal !== null && <p class="fault">No request: {refusal}</p>}
      {requests.map((sent, index) => (
        <pre key={index} class="foreign" tabIndex={0} role="region" aria-label={`${title}, URL ${index + 1}`}>
          {requestText(sent)}
        </pre>
      ))}
    </>
  )
}
