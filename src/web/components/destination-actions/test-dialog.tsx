import { useEffect, useState } from 'preact/hooks'
import { ApiFailure, request } from '../../api/request.ts'
import type { SampleAnswer } from '../../api/routes.ts'
import { Badge } from '../badge.tsx'
import { Dialog } from '../dialog.tsx'
import { msText, wordsOf } from '../figures.ts'
import { Failure, Loading } from '../notices.tsx'

/** Sends a sample call to each URL, and shows how each answered. */
export function TestDialog({ id, close }: { id: string; close: () => void }) {
  const [result, setResult] = useState<SampleAnswer | null>(null)
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const [count, setCount] = useState(1)
  useEffect(() => {
    const ending = new AbortController()
    setResult(null)
    setFailure(null)
    request('POST /destinations/{id}/test', { id, signal: ending.signal }).then(
      ({ data }) => setResult(data),
      (error: unknown) => {
        if (ending.signal.aborted) return
        if (!(error instanceof ApiFailure)) throw error
        setFailure(error)
      },
    )
    return () => ending.abort()
  }, [count])
  return (
    <Dialog title={`Test of ${id}`} close={close}>
      <div aria-live="polite">
        {failure && <Failure failure={failure} />}
        {!failure && !result && <Loading what="the outcomes of a sample call" />}
        {result && (
          <ul class="outcomes">
            {result.data.map(({ number, url, outcome, status, durationMs, detail }) => (
              <li key={number}>
                <Badge tone={outcome === 'success' ? 'good' : 'bad'} text={wordsOf(outcome)} />
                <div>
                  <p class="id">{url}</p>
                  <p class="faint foreign">
                    {status !== null && `Status ${status}, `}
                    {msText(durationMs)}
                    {detail !== null && detail !== `status ${status}` && ` · ${detail}`}
                  </p>
                </div>
              </li>
            ))}
          </ul>
        )}
      </div>
      <div class="dialog-buttons">
        <button type="button" class="button" onClick={() => setCount(count + 1)}>
          Send again
        </button>
        <button type="button" class="button button-primary" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  )
}
