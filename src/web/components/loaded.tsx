import type { ComponentChildren } from 'preact'
import type { Live } from '../api/live.ts'
import { Failure, Loading, Stale } from './notices.tsx'

/** What was loaded; before that, that it is loading or why it cannot be. Keeps what there is while asking again fails. */
export function Loaded<T>({
  live,
  what,
  children,
}: {
  live: Live<T>
  /** For people: `destinations`. */
  what: string
  children: (data: T) => ComponentChildren
}) {
  const { data, failure, loadedAt, reload } = live
  if (data === null) return failure ? <Failure failure={failure} retry={reload} /> : <Loading what={what} />
  return (
    <>
      <Stale failure={failure} loadedAt={loadedAt} />
      {children(data)}
    </>
  )
}
