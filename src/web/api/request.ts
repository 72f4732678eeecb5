import { useCallback, useEffect, useState } from 'preact/hooks'
import type { Live, LiveAsked } from './live.ts'
import type { Route, Routes } from './routes.ts'

export const apiPrefix = '/api/v1'

/** Why a request was not answered as asked. `unreachable`: there was no answer at all. */
export class ApiFailure extends Error {
  readonly status: number
  readonly code: string
  /** The fields that are wrong, as the request names them. */
  readonly fields: readonly { field: string; message: string }[]

  constructor(status: number, { code, message, fields = [] }: ErrorBody) {
    super(message)
    this.status = status
    this.code = code
    this.fields = fields
  }
}

interface ErrorBody {
  code: string
  message: string
  fields?: { field: string; message: string }[]
}

type Value = string | number | boolean | null | undefined

export interface Asked {
  /** For `{id}` in the route. */
  id?: string
  /** What is null, undefined or empty is left out; a list is repeated. */
  query?: Record<string, Value | readonly Value[]>
  body?: unknown
  /** In place of `body`: lines that are sent as they are. */
  lines?: Blob | string
  headers?: Record<string, string>
  signal?: AbortSignal | undefined
}

export interface Answer<T> {
  data: T
  /** Its version, for If-Match; null where it has none. */
  tag: string | null
}

/** Learns of a session that is over. */
let onUnauthorized = (): void => {}
export const whenUnauthorized = (learn: () => void): void => void (onUnauthorized = learn)

/** Learns that the console, or something that it needs, does not answer. */
let onAway = (): void => {}
export const whenAway = (learn: () => void): void => void (onAway = learn)

/** Method and path, as they are sent. */
export function requestLine(
  route: Route,
  { id = '', query = {} }: Asked = {},
): { method: string; path: string } {
  const [method, template] = route.split(' ') as [string, string]
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value]
      .flat()
      .flatMap((each) => (each === null || each === undefined || each === '' ? [] : [[name, String(each)]])),
  )
  const search = pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`
  return { method, path: `${apiPrefix}${template.replace('{id}', encodeURIComponent(id))}${search}` }
}

/** Asks the API. Throws ApiFailure; an aborted request throws what `fetch` does. */
export async function request<R extends Route>(route: R, asked: Asked = {}): Promise<Answer<Routes[R]>> {
  const response = await send(route, asked)
  const text = await response.text()
  return { data: JSON.parse(text) as Routes[R], tag: response.headers.get('etag') }
}

/** As `request`, for work that may take long: `progress` learns how far it is. */
export async function requestWithProgress<R extends Route, P>(
  route: R,
  asked: Asked,
  progress: (state: P) => void,
): Promise<Routes[R]> {
  const headers = { ...asked.headers, Accept: 'application/x-ndjson' }
  const response = await send(route, { ...asked, headers })
  for await (const line of linesOf(response)) {
    const part = JSON.parse(line) as { progress?: P; result?: Routes[R]; error?: ErrorBody }
    if (part.progress !== undefined) progress(part.progress)
    else if (part.error) throw new ApiFailure(response.status, part.error)
    else return part.result!
  }
  throw new ApiFailure(response.status, {
    code: 'unreachable',
    message: 'The answer broke off before its end.',
  })
}

/** The lines of a streamed answer, until it ends or its request is aborted. */
export async function* linesOf(response: Response): AsyncGenerator<string, void, undefined> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      const lines = (rest + value).split('\n')
      rest = lines.pop()!
      for (const line of lines) if (line !== '') yield line
    }
    if (rest !== '') yield rest
  } finally {
    void reader.cancel().catch(() => {})
  }
}

/** The answer's head, for streams; its status is a success. */
export async function send(route: Route, asked: Asked): Promise<Response> {
  const { method, path } = requestLine(route, asked)
  const isSafe = method === 'GET'
  let response: Response
  try {
    response = await fetch(path, {
      method,
      headers: {
        Accept: 'application/json',
        // Also without a body: the session's cookie is taken with it only.
        ...(!isSafe && {
          'Content-Type': asked.lines === undefined ? 'application/json' : 'application/x-ndjson',
        }),
        ...asked.headers,
      },
      ...(asked.body !== undefined && { body: JSON.stringify(asked.body) }),
      ...(asked.lines !== undefined && { body: asked.lines }),
      signal: asked.signal ?? null,
    })
  } catch (error) {
    if (asked.signal?.aborted) throw error
    onAway()
    throw new ApiFailure(0, {
      code: 'unreachable',
      message: 'The console does not answer. It may be restarting.',
    })
  }
  if (response.ok) return response
  const failure = new ApiFailure(response.status, await errorOf(response))
  if (failure.status === 401 && route !== 'POST /session') onUnauthorized()
  // Of a request that was given up while its answer was read, nothing is known.
  const isOfServer = failure.status >= 500 && !asked.signal?.aborted
  if (isOfServer && (failure.code === 'unavailable' || failure.code === 'unreachable')) onAway()
  throw failure
}

async function errorOf(response: Response): Promise<ErrorBody> {
  try {
    return (await response.json()) as ErrorBody
  } catch {
    return {
      code: 'unreachable',
      message: `A proxy in front of the console answered with ${response.status}.`,
    }
  }
}

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
