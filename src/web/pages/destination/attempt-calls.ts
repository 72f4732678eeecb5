import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiFailure, requestWithProgress } from '../../api/request.ts'
import type { Routes } from '../../api/routes.ts'

export type CallOfAttempt = Routes['POST /messages/calls']['data'][number]

/** The index of calls is read for each request: what is new in a list that follows is collected for so long. */
const everyMs = 15_000

/**
 * What calls are of, each asked for once for as long as the list is open. Undefined: not asked yet, or on its way; null: it
 * is not known any more, or erased.
 *
 * @param page which page of the list it is: of another one nobody waits
 */
export function useCallsOf(
  messageIds: readonly string[],
  page: string,
): (messageId: string) => CallOfAttempt | null | undefined {
  const found = useRef(new Map<string, CallOfAttempt | null>()).current
  const asked = useRef({ at: 0, page: '' })
  const ending = useRef<AbortController | null>(null)
  const [, draw] = useState(0)
  const unknown = [...new Set(messageIds)].filter((id) => !found.has(id))
  useEffect(() => {
    const aborting = (ending.current = new AbortController())
    return () => aborting.abort()
  }, [])
  useEffect(() => {
    if (unknown.length === 0) return
    const { signal } = ending.current!
    const ask = async () => {
      asked.current = { at: Date.now(), page }
      const body = { messageIds: unknown }
      let calls: CallOfAttempt[] = []
      try {
        const answer = await requestWithProgress('POST /messages/calls', { body, signal }, () => {})
        calls = answer.data
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof ApiFailure)) throw error
      }
      // Of those that could not be had, too: the list asks no second time.
      for (const id of unknown) found.set(id, null)
      for (const call of calls) found.set(call.messageId, call)
      draw((times) => times + 1)
    }
    const { at, page: before } = asked.current
    const waitMs = page === before ? Math.max(0, at + everyMs - Date.now()) : 0
    const timer = window.setTimeout(() => void ask(), waitMs)
    return () => window.clearTimeout(timer)
  }, [unknown.join(' ')])
  return (messageId) => found.get(messageId)
}
