import { useState } from 'preact/hooks'
import { CopyButton } from '../copy.tsx'
import { countText } from '../figures.ts'
import { indented } from './json-text.ts'

const shownLength = 4_000

/** Text from outside, JSON on several lines. Of a long one the beginning, until somebody asks for all of it. */
export function LongText({ text, what }: { text: string; what: string }) {
  const [isWhole, setWhole] = useState(false)
  const shown = indented(text) ?? text
  const isCut = !isWhole && shown.length > shownLength
  return (
    <div class="long-text">
      <pre class="foreign" tabIndex={0} role="region" aria-label={what}>
        {isCut ? `${shown.slice(0, shownLength)}…` : shown}
      </pre>
      <div class="long-text-actions">
        {isCut && (
          <button type="button" class="button button-small" onClick={() => setWhole(true)}>
            Show all {countText(shown.length)} characters
          </button>
        )}
        <CopyButton text={text} what={what} />
      </div>
    </div>
  )
}
