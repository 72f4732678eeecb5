import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiFailure, request, requestWithProgress } from '../../api/request.ts'
import type { Live } from '../../api/live.ts'
import type { AuditAnswer, AuditProgressLine, VerdictAnswer } from '../../api/routes.ts'
import { countOf } from '../../components/figures.ts'
import { say } from '../../components/notices.tsx'

/** How often it is looked how far an audit is that this page does not hear from, in ms. */
const lookMs = 1_000

interface AuditRun {
  /** How far the audit of this console is, whoever began it; null while none runs. */
  progress: AuditProgressLine | null
  failure: ApiFailure | null
  /** @param since a duration; empty: everything */
  start(since: string): void
  stop(): void
}

/** The audit that runs on this console. It goes on when the page is left, and is found again. */
export function useAuditRun(live: Live<AuditAnswer>): AuditRun {
  const [heard, setHeard] = useState<AuditProgressLine | null>(null)
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const hearing = useRef<AbortController | null>(null)
  useEffect(() => () => hearing.current?.abort(), [])

  const found = live.data?.running ?? null
  const isOfOthers = heard === null && found !== null
  const { reload } = live
  useEffect(() => {
    if (!isOfOthers) return
    const timer = window.setInterval(reload, lookMs)
    return () => window.clearInterval(timer)
  }, [isOfOthers, reload])

  const start = async (since: string) => {
    const leaving = new AbortController()
    hearing.current = leaving
    setFailure(null)
    setHeard({ phase: 'tallies', done: 0, total: 0 })
    try {
      const asked = { query: { since }, signal: leaving.signal }
      const verdict = await requestWithProgress('POST /audit', asked, setHeard)
      say(verdictText(verdict), verdict.ok ? 'good' : 'bad')
    } catch (error) {
      if (leaving.signal.aborted) return
      if (!(error instanceof ApiFailure)) throw error
      // It was stopped, from here or from elsewhere.
      if (error.code === 'conflict') say('The audit was stopped: the verdict of before stands')
      else setFailure(error)
    } finally {
      setHeard(null)
      reload()
    }
  }
  const stop = async () => {
    try {
      await request('DELETE /audit')
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      setFailure(error)
    }
    reload()
  }
  return { progress: heard ?? found, failure, start: (since) => void start(since), stop: () => void stop() }
}

export function verdictText({ ok, faultCount, unbalancedCount }: VerdictAnswer): string {
  if (ok) return 'Every call is accounted for'
  const parts = [
    faultCount > 0 && countOf(faultCount, 'fault'),
    unbalancedCount > 0 && `${countOf(unbalancedCount, 'destination')} out of balance`,
  ]
  return `Not every call is accounted for: ${parts.filter(Boolean).join(', ')}`
}
