import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
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
  const count = useRef(0)
  const test = async (body: AlertTest) => {
    const number = ++count.current
    // One that was slower than the next says nothing any more.
    const ended = (to: TestState) => number === count.current && setState(to)
    setState('asking')
    try {
      const { data } = await request('POST /alerts/test', { body })
      ended({ answers: data.answers })
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      ended({ failure: error })
    }
  }
  return { state, run: (body: AlertTest) => void test(body) }
}

interface AlertFormProps {
  /** What is tested as it stands in the form. */
  given: AlertTest
  isGiven: boolean
  canTest?: boolean
  /** Rejects with ApiFailure, which is shown. */
  save: () => Promise<void>
  children: ComponentChildren
}

/** Fields, Test and Save, and below what came of either. */
export function AlertForm({ given, isGiven, canTest = true, save, children }: AlertFormProps) {
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const [isSaving, setSaving] = useState(false)
  const { state, run } = useTest()
  const submit = async (event: Event) => {
    event.preventDefault()
    setSaving(true)
    setFailure(null)
    try {
      await save()
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      setFailure(error)
    } finally {
      setSaving(false)
    }
  }
  return (
    <form onSubmit={submit}>
      {children}
      <div class="form-buttons">
        <button type="button" class="button" disabled={!isGiven || !canTest} onClick={() => run(given)}>
          Test
        </button>
        <button type="submit" class="button button-primary" disabled={!isGiven || isSaving}>
          Save
        </button>
      </div>
      {failure && <Failure failure={failure} />}
      <Answers state={state} />
    </form>
  )
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
