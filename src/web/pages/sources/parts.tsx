import { useState } from 'preact/hooks'
import type { SourceAnswer } from '../../api/routes.ts'
import { countText } from '../../components/figures.ts'
import { Badge, CopyButton } from '../../components/text.tsx'

export function SourceBadge({ source: { enabled, builtIn } }: { source: SourceAnswer }) {
  if (builtIn)
    return (
      <Badge tone="plain" text="built in" title="Operational events, which destinations can subscribe to" />
    )
  return <Badge tone="plain" text={enabled ? 'enabled' : 'disabled'} />
}

/** What is left out of a list. */
export const AndMore = ({ shown, count }: { shown: number; count: number }) =>
  count > shown ? <span class="faint">and {countText(count - shown)} more</span> : null

/** A write key. It is no secret, as web pages have it in them, but lets its holder send calls: covered on shared screens. */
export function WriteKey({ of, text }: { of: string; text: string }) {
  const [isShown, setShown] = useState(false)
  return (
    <span class="secret">
      <span class="id">
        {isShown ? (
          text
        ) : (
          <span class="covered" role="img" aria-label="covered">
            ••••••••
          </span>
        )}
      </span>
      <button
        type="button"
        class="button button-quiet button-small"
        aria-label={`${isShown ? 'Hide' : 'Show'} write key of ${of}`}
        onClick={() => setShown(!isShown)}
      >
        {isShown ? 'Hide' : 'Show'}
      </button>
      <CopyButton text={text} what={`write key of ${of}`} />
    </span>
  )
}
