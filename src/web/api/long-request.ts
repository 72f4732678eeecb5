import { useCallback, useEffect, useState } from 'preact/hooks'
import type { Live, LiveAsked } from './live.ts'
import { ApiFailure, requestWithProgress } from './request.ts'
import type { Route, Routes } from './routes.ts'

export interface LongRequest<T, P> extends Live<T> {
  /** How far the request is that runs; null when none runs, or it has not said so. */
  progress: P | null
  isRunning: boolean
}

const nothing = { data: null, loadedAt: null, failure: null, progress: null, isRunning: true }

/** Asks what may take long, once; again by `reload`, and for another `asked`, of which nothing is known at first. */
export function useLongRequest<R extends Route, P>(route: R, asked: LiveAsked): LongRequest<Routes[R], P> {
  const key = JSON.stringify([route, asked])
  const [times, setTimes] = useState(0)
  const [state, setState] = useState<Omit<LongRequest<Routes[R], P>, 'reload' | 'tag'> & { key: string }>({
    ...nothing,
    key,
  })
  useEffect(() => {
    const ending = new AbortController()
    const { signal } = ending
    const change = (changes: Partial<typeof state>) => {
      if (!signal.aborted)
        setState((before) => ({ ...(before.key === key ? before : { ...nothing, key }), ...changes }))
    }
    const ask = async () => {
      change({ isRunning: true, progress: null })
      try {
        const progress = (progress: P) => change({ progress })
        const data = await requestWithProgress<R, P>(route, { ...asked, signal }, progress)
        change({ data, loadedAt: Date.now(), failure: null, isRunning: false })
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof ApiFailure)) throw error
        change({ failure: error, isRunning: false })
      }
    }
    void ask()
    return () => ending.abort()
  }, [key, times])
  const reload = useCallback(() => setTimes((before) => before + 1), [])
  return { ...(state.key === key ? state : nothing), tag: null, reload }
}
