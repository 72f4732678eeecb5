import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiFailure, request, type Asked } from './request.ts'
import type { Route, Routes } from './routes.ts'

/** What was asked for, as it is known now. */
export interface Live<T> {
  /** Null until the first answer; kept while it is asked for again, also when that fails. */
  data: T | null
  /** For If-Match. */
  tag: string | null
  /** When `data` came, epoch ms. */
  loadedAt: number | null
  /** Why the last request failed; null when it did not. */
  failure: ApiFailure | null
  /** Asks again, now. */
  reload(): void
}

export type LiveAsked = Pick<Asked, 'id' | 'query' | 'body'>

const nothing = { data: null, tag: null, loadedAt: null, failure: null }

interface KeptAnswer {
  data: unknown
  tag: string | null
  loadedAt: number
}

/** What was read last: another page that cannot be read now shows it. */
const kept = new Map<string, KeptAnswer>()
const maxKept = 30

function keep(key: string, answer: KeptAnswer): void {
  kept.delete(key)
  kept.set(key, answer)
  if (kept.size > maxKept) kept.delete(kept.keys().next().value!)
}

/** Whoever logs in next may not see what the one before saw. */
export const forgetAnswers = (): void => kept.clear()

/**
 * Asks the API, and again every `everyMs` while the page is in view (0: once). Another `asked` begins from nothing. What is not
 * wanted is not asked for.
 */
export function useLive<R extends Route>(
  route: R,
  asked: LiveAsked = {},
  everyMs = 5_000,
  isWanted = true,
): Live<Routes[R]> {
  const key = JSON.stringify([route, asked])
  const [state, setState] = useState<Omit<Live<Routes[R]>, 'reload'> & { key: string }>({ ...nothing, key })
  const again = useRef<() => void>(() => {})

  useEffect(() => {
    if (!isWanted) return
    const ending = new AbortController()
    let timer: number | undefined
    let isAsking = false
    /** What is on its way may be of before that for which it was asked for again. */
    let isDue = false
    const ask = async () => {
      if (isAsking) return
      isAsking = true
      isDue = false
      window.clearTimeout(timer)
      try {
        const { data, tag } = await request(route, { ...asked, signal: ending.signal })
        if (ending.signal.aborted) return
        const answer = { data, tag, loadedAt: Date.now() }
        keep(key, answer)
        setState({ key, ...answer, failure: null })
      } catch (error) {
        if (ending.signal.aborted) return
        if (!(error instanceof ApiFailure)) throw error
        setState((before) => ({
          ...(before.key === key && before.data !== null ? before : { ...nothing, key, ...keptFor(error) }),
          failure: error,
        }))
      } finally {
        isAsking = false
        if (isDue && !ending.signal.aborted) void ask()
        else if (everyMs > 0 && !ending.signal.aborted) timer = window.setTimeout(next, everyMs)
      }
    }
    const keptFor = ({ code }: ApiFailure) =>
      code === 'unavailable' || code === 'unreachable'
        ? (kept.get(key) as (KeptAnswer & { data: Routes[R] }) | undefined)
        : undefined
    const next = () => {
      if (document.visibilityState === 'visible') void ask()
    }
    // What is asked once is not asked again by a look at another window: it may send something.
    const isRepeated = everyMs > 0
    again.current = () => {
      isDue = isAsking
      void ask()
    }
    if (isRepeated) document.addEventListener('visibilitychange', next)
    void ask()
    return () => {
      ending.abort()
      window.clearTimeout(timer)
      document.removeEventListener('visibilitychange', next)
    }
  }, [key, everyMs, isWanted])

  const reload = useCallback(() => again.current(), [])
  // Until the effect has run, the state may still be that of what was asked before.
  return { ...(state.key === key ? state : nothing), reload }
}
