import { useEffect, useState } from 'preact/hooks'
import { ApiFailure, requestWithProgress } from '../api/request.ts'

/** Names of track calls that came in at some sources. */
export interface KnownEvents {
  /** The most frequent first; null until they are known. */
  events: readonly { sourceId: string; name: string; calls: number }[] | null
  failure: ApiFailure | null
}

const nothing: KnownEvents = { events: null, failure: null }

/** Reads them once; what is not wanted is not read. The first time it may take as long as reading the topics. */
export function useEvents(sourceIds: readonly string[], isWanted: boolean): KnownEvents {
  const key = JSON.stringify(sourceIds)
  const [known, setKnown] = useState<KnownEvents & { key: string }>({ ...nothing, key })
  useEffect(() => {
    if (!isWanted) return
    const ending = new AbortController()
    const { signal } = ending
    const ofSource = async (source: string) => {
      const { events } = await requestWithProgress('GET /events', { query: { source }, signal }, () => {})
      return events.flatMap(({ type, name, calls }) =>
        type === 'track' && name !== null ? [{ sourceId: source, name, calls }] : [],
      )
    }
    Promise.all(sourceIds.map(ofSource)).then(
      (all) => {
        const events = all.flat().toSorted((a, b) => b.calls - a.calls)
        if (!signal.aborted) setKnown({ key, events, failure: null })
      },
      (error: unknown) => {
        if (signal.aborted) return
        if (!(error instanceof ApiFailure)) throw error
        setKnown({ key, events: null, failure: error })
      },
    )
    return () => ending.abort()
  }, [key, isWanted])
  return known.key === key ? known : nothing
}
