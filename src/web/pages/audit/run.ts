import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiFailure, requestWithProgress } from '../../api/request.ts'
import type { AuditProgressLine, VerdictAnswer } from '../../api/routes.ts'
import { countOf } from '../../components/figures.ts'
import { say } from '../../components/notices.tsx'

interface AuditRun {
  /** Null while none of ours runs. */
  progress: AuditProgressLine | null
  failure: ApiFailure | null
  /** @param since a duration; empty: everything */
  start(since: string): void
  stop(): void
}

/** An audit that this page runs; it ends with the page, as the API has it. */
export function useAuditRun(reload: () => void): AuditRun {
  const [progress, setProgress] = useState<AuditProgressLine | null>(null)
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const running = useRef<AbortController | null>(null)
  useEffect(() => () => running.current?.abort(), [])

  const start = async (since: string) => {
    const ending = new AbortController()
    running.current = ending
    setFailure(null)
    setProgress({ phase: 'tallies', done: 0, total: 0 })
    try {
      const asked = { query: { since }, signal: ending.signal }
      const verdict = await requestWithProgress('POST /audit', asked, setProgress)
      say(verdictText(verdict), verdict.ok ? 'good' : 'bad')
    } catch (error) {
      if (ending.signal.aborted) return
      if (!(error instanceof ApiFailure)) throw error
      setFailure(error)
    } finally {
      setProgress(null)
      reload()
    }
  }
  return {
    progress,
    failure,
    start: (since) => void start(since),
    stop: () => running.current?.abort(),
  }
}

export function verdictText({ ok, faults, destinations }: VerdictAnswer): string {
  if (ok) return 'Every call is accounted for'
  const unbalanced = destinations.filter(({ balance }) => balance !== 0).length
  const parts = [
    faults.length > 0 && countOf(faults.length, 'fault'),
    unbalanced > 0 && `${countOf(unbalanced, 'destination')} out of balance`,
  ]
  return `Not every call is accounted for: ${parts.filter(Boolean).join(', ')}`
}
