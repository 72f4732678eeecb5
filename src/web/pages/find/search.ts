import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiFailure, requestWithProgress } from '../../api/request.ts'
import type { ListPage, MessageAnswer, UserMessageAnswer } from '../../api/routes.ts'

/** What the text that was given may be. A delivery is looked for by the messageId in its id. */
export interface Candidate {
  kind: 'call' | 'delivery' | 'user'
  id: string
}

export type Found = { is: 'call'; life: MessageAnswer } | { is: 'user' } | { is: 'none' }

export interface IndexedRecords {
  done: number
  total: number
}

export interface CallSearch {
  /** Null until the first answer; kept while it is asked for again. */
  found: Found | null
  /** What was found; while nothing is, what is looked for. */
  candidate: Candidate
  progress: IndexedRecords | null
  isRunning: boolean
  loadedAt: number | null
  failure: ApiFailure | null
  /** Asks again for what was found. */
  reload(): void
}

const idAtEnd = /^(.+):[a-z0-9_-]{1,64}$/s
/** Behind its messageId a delivery's id has its destination, and may have a URL and a replay. */
const maxPartsBehind = 3

/** What a text may be, in the order in which it is looked for. */
export function candidatesFor(text: string, isUser: boolean, maySeeUsers: boolean): Candidate[] {
  if (isUser) return [{ kind: 'user', id: text }]
  const candidates: Candidate[] = [{ kind: 'call', id: text }]
  let id = text
  for (let count = 0; count < maxPartsBehind; count++) {
    const before = idAtEnd.exec(id)?.[1]
    if (before === undefined) break
    id = before
    candidates.push({ kind: 'delivery', id })
  }
  return maySeeUsers ? [...candidates, { kind: 'user', id: text }] : candidates
}

type State = Omit<CallSearch, 'reload'>

/** Looks for each candidate until one is found. Ends with the page. */
export function useCallSearch(candidates: readonly Candidate[]): CallSearch {
  const [state, setState] = useState<State>({
    found: null,
    candidate: candidates[0]!,
    progress: null,
    isRunning: true,
    loadedAt: null,
    failure: null,
  })
  const [times, setTimes] = useState(0)
  const known = useRef<Candidate | null>(null)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const change = (changes: Partial<State>) => {
      if (!signal.aborted) setState((before) => ({ ...before, ...changes }))
    }
    const look = async () => {
      change({ isRunning: true })
      try {
        for (const candidate of known.current ? [known.current] : candidates) {
          change({ candidate, progress: null })
          const found = await foundAs(candidate, signal, (progress) => change({ progress }))
          if (found.is === 'none') continue
          known.current = candidate
          return change({ found, failure: null, isRunning: false, loadedAt: Date.now() })
        }
        change({ found: { is: 'none' }, failure: null, isRunning: false, loadedAt: Date.now() })
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof ApiFailure)) throw error
        change({ failure: error, isRunning: false })
      }
    }
    void look()
    return () => controller.abort()
  }, [times])
  const reload = useCallback(() => setTimes((before) => before + 1), [])
  return { ...state, reload }
}

async function foundAs(
  { kind, id }: Candidate,
  signal: AbortSignal,
  progress: (state: IndexedRecords) => void,
): Promise<Found> {
  try {
    if (kind === 'user') {
      const asked = { id, query: { limit: 1 }, signal }
      const { data, next } = await requestWithProgress<'GET /users/{id}/messages', IndexedRecords>(
        'GET /users/{id}/messages',
        asked,
        progress,
      )
      return isSome({ data, next }) ? { is: 'user' } : { is: 'none' }
    }
    const life = await requestWithProgress<'GET /messages/{id}', IndexedRecords>(
      'GET /messages/{id}',
      { id, signal },
      progress,
    )
    return { is: 'call', life }
  } catch (error) {
    if (error instanceof ApiFailure && error.code === 'not_found') return { is: 'none' }
    throw error
  }
}

/** A page without calls can lead to one with some. */
const isSome = ({ data, next }: ListPage<UserMessageAnswer>): boolean => data.length > 0 || next !== null
