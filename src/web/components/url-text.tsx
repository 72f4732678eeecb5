import type { ProblemAnswer } from '../api/routes.ts'
import { wordsOf } from './figures.ts'
import { sentence } from './notices.tsx'
import { Ago, now, Since } from './time.tsx'

type UrlState = NonNullable<ProblemAnswer['destination']>['urls'][number]

/** Since when a URL is in trouble, and how it answered last. */
export function UrlText({ url: state }: { url: UrlState }) {
  const { url, gone, goneAt, downSince, lastFailure, pausedUntil, withoutToken } = state
  return (
    <p>
      <span class="id">{url}</span>
      {gone && goneAt !== null && (
        <>
          {' '}
          answered 410 <Ago at={goneAt} />.
        </>
      )}
      {!gone && downSince !== null && (
        <>
          {' '}
          down <Since at={downSince} />.
        </>
      )}
      {!gone && withoutToken && <> {sentence(withoutToken.detail ?? wordsOf('no_token'))}</>}
      {!gone && !withoutToken && lastFailure && (
        <>
          {' '}
          {sentence(lastFailure.detail ?? wordsOf(lastFailure.outcome)).slice(0, -1)}{' '}
          <Ago at={lastFailure.at} />.
        </>
      )}
      {pausedUntil !== null && Date.parse(pausedUntil) > now.value && (
        <>
          {' '}
          The next attempt comes <Ago at={pausedUntil} />.
        </>
      )}
    </p>
  )
}
