import { useState } from 'preact/hooks'
import { ApiFailure, request } from '../../api/request.ts'
import type { AlertAnswers } from '../../api/routes.ts'
import { Failure, Loading } from '../../components/notices.tsx'
import { Badge } from '../../components/text.tsx'

/** What is tested, and then saved. */
export type AlertTest = Record<string, string | string[]>

type TestState = { answers: AlertAnswers['answers'] } | { failure: ApiFailure } | 'asking' | null

/** One test after another, and what came of the last. */
export function useTest() {
  const [state, setState] = useState<TestState>(null)
  const test = async (body: AlertTest) => {
    setState('asking')
    try {
      const { data } = await request('POST /alerts/test', { body })
      setState({ answers: data.answers })
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      setState({ failure: error })
    }
  }
  return { state, run: (body: AlertTest) => void test(body) }
}

export function Answers({ state }: { state: TestState }) {
  return (
    <div aria-live="polite">
      {state === 'asking' && <Loading what="the answer" />}
      {state !== null && typeof state === 'object' && 'failure' in state && (
        <Failure failure={state.failure} />
      )}
      {state !== null && typeof state === 'object' && 'answers' in state && (
        <ul class="outcomes">
          {state.answers.map(({ to, succeeded, status, answer }) => (
            <li key={to}>
              <Badge tone={succeeded ? 'good' : 'bad'} text={succeeded ? 'taken' : 'not taken'} />
              <div>
                <p class="id">{to}</p>
                <p class="faint foreign">
                  {status !== null && `Status ${status}, `}
                  {answer}
                </p>
              </div>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
