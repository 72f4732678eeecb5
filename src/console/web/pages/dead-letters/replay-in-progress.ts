import { signal } from '@preact/signals'
import { ApiFailure, requestWithProgress } from '../../api/request.ts'
import type { ReplayProgressAnswer, ReplayReportAnswer } from '../../api/routes.ts'
import { countOf, countText } from '../../components/figures.ts'
import { say } from '../../components/toast.tsx'

/** What is replayed: the body of the API's request. */
export interface ReplayChoice {
  ids?: string[]
  kinds?: object[]
  since?: string
  until?: string
}

/** A replay of dead letters, which goes on while this page is open, whatever it shows. */
export type RunningReplay = { total: number; what: string } & (
  | { is: 'running'; counts: ReplayProgressAnswer | null; cancel: () => void }
  | { is: 'stopped'; counts: ReplayProgressAnswer | null }
  | { is: 'failed'; counts: ReplayProgressAnswer | null; failure: ApiFailure }
  | { is: 'done'; report: ReplayReportAnswer }
)

/** The one that runs, or the last one; null: there was none, or nobody wants to see it any more. */
export const runningReplay = signal<RunningReplay | null>(null)

const askBeforeLeaving = (event: BeforeUnloadEvent) => event.preventDefault()

/** @param total what a dry run said that would be sent */
export async function startReplay(
  choice: ReplayChoice,
  rate: number | null,
  { total, what }: { total: number; what: string },
): Promise<void> {
  const ending = new AbortController()
  let counts: ReplayProgressAnswer | null = null
  const show = () =>
    void (runningReplay.value = { is: 'running', total, what, counts, cancel: () => ending.abort() })
  show()
  addEventListener('beforeunload', askBeforeLeaving)
  try {
    const report = await requestWithProgress<'POST /dead-letters/replay', ReplayProgressAnswer>(
      'POST /dead-letters/replay',
      { body: { ...choice, ...(rate !== null && { rate }) }, signal: ending.signal },
      (progress) => {
        counts = progress
        show()
      },
    )
    runningReplay.value = { is: 'done', total, what, report }
    say(`${countOf(report.replayed, 'dead letter')} sent again`)
  } catch (error) {
    if (ending.signal.aborted) runningReplay.value = { is: 'stopped', total, what, counts }
    else if (error instanceof ApiFailure)
      runningReplay.value = { is: 'failed', total, what, counts, failure: error }
    else throw error
  } finally {
    removeEventListener('beforeunload', askBeforeLeaving)
  }
}

/** `412 × 503 from crm`. */
export function groupText(
  count: number,
  status: string | number | null,
  destinationId: string | null,
): string {
  const where = destinationId === null ? '' : ` from ${destinationId}`
  return `${countText(count)} × ${status ?? 'no attempt'}${where}`
}
