import type { MessageResponses } from '../api/routes.ts'
import { countText } from './figures.ts'
import { LongText } from './text.tsx'

type Sent = Pick<MessageResponses['responses'][number], 'request' | 'headers'>

const linesOf = (headers: readonly { name: string; value: string }[]): string =>
  headers.map(({ name, value }) => `${name}: ${value}`).join('\n')

/** What went out in an attempt, beside its body, and the header of what came back; shown when somebody asks. */
export function ExchangeText({ request, headers, who }: Sent & { who: string }) {
  return (
    <>
      {request && (
        <details>
          <summary>
            Request: {request.method}, {countText(request.headers.length)} headers and a body of{' '}
            {countText(request.bodyBytes)} bytes
          </summary>
          <LongText
            text={`${request.method} ${request.url}\n${linesOf(request.headers)}`}
            what={`Request to ${who}`}
          />
        </details>
      )}
      {headers && (
        <details>
          <summary>Headers of the response</summary>
          <LongText text={linesOf(headers)} what={`Headers from ${who}`} />
        </details>
      )}
    </>
  )
}
