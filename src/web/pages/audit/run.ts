import { useEffect, useState } from 'preact/hooks'
import { ApiFailure, request, requestWithProgress } from '../../api/request.ts'
import { useLive, type Live } from '../../api/live.ts'
import type { AuditAnswer, AuditProgressLine, VerdictAnswer } from '../../api/routes.ts'
import { countOf } from '../../components/figures.ts'
import { say, sentence } from '../../components/notices.tsx'

/** How often it is looked how far an audit is, and otherwise whether one runs, in ms. */
const [followMs, lookMs] = [1_000, 10_000]

interface AuditRun {
  live: Live<AuditAnswer>
  /** How far the audit of this console is, whoever began it; null while none runs. */
  progress: AuditProgressLine | null
  failure: ApiFailure | null
  /** @param since a duration; empty: everything */
  start(since: string): void
  stop(): void
}

/** The audit that runs on this console, whoever began it: it goes on when the page is left, and is found again. */
export function useAuditRun(): AuditRun {
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const [isBeginning, setBeginning] = useState(false)
  /** Since when it is followed, epoch ms; null: none runs. */
  const [since, setSince] = useState<number | null>(null)
  const live = useLive('GET /audit', {}, since === null ? lookMs : followMs)
  const { data, loadedAt } = live
  const running = data?.running ?? null

  useEffect(() => {
    if (running !== null && since === null) setSince(Date.now())
  }, [running, since])
  const isOver = since !== null && running === null && loadedAt !== null && loadedAt >= since
  useEffect(() => {
    if (!isOver) return
    setSince(null)
    const { last, failure } = data!
    if (failure !== null) say(`${sentence(failure)} The verdict of before stands.`, 'bad')
    else if (last !== null) say(verdictText(last), last.open === null ? 'good' : 'bad')
  }, [isOver])

  const start = async (period: string) => {
    const begun = new AbortController()
    setFailure(null)
    setBeginning(true)
    try {
      // Once it runs it is followed like any other.
      const asked = { query: { since: period }, signal: begun.signal }
      await requestWithProgress('POST /audit', asked, () => begun.abort())
    } catch (error) {
      if (!begun.signal.aborted) {
        if (!(error instanceof ApiFailure)) throw error
        setFailure(error)
        return
      }
    } finally {
      setBeginning(false)
    }
    setSince(Date.now())
  }
  const stop = async () => {
    try {
      await request('DELETE /audit')
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      setFailure(error)
    }
    live.reload()
  }
  const isRunning = isBeginning || (since !== null && !isOver)
  const unknown = { phase: 'tallies', done: 0, total: 0 } as const
  return {
    ...{ live, failure, progress: running ?? (isRunning ? unknown : null) },
    start: (period) => void start(period),
    stop: () => void stop(),
  }
}
export function verdictText({ ok, open, faultCount, unbalancedCount }: VerdictAnswer): string {
  if (ok) return open === null ? 'Every call is accounted for' : 'What was audited is accounted for'
  const parts = [
    faultCount > 0 && countOf(faultCount, 'fault'),
    unbalancedCount > 0 && `${countOf(unbalancedCount, 'destination')} out of balance`,
  ]
  return `Not every call is accounted for: ${parts.filter(Boolean).join(', ')}`
}
