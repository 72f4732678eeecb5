import { useState } from 'preact/hooks'
import { useLive } from '../api/live.ts'
import type { SourceAnswer } from '../api/routes.ts'
import { isLimited } from '../app/session.ts'
import { Choice, TextField } from './fields.tsx'
import { CopyButton } from './text.tsx'
import { snippets, type SnippetKind } from './snippets.ts'

const kinds = [
  ['curl', 'curl'],
  ['node', 'Node'],
  ['browser', 'Browser'],
] as const

/** Where a screen has room beside the calls. */
const isWide = () => matchMedia('(min-width: 1100px)').matches

export interface SendCallsProps {
  source: SourceAnswer
  /** Whether all of it is shown at first; unless given, where a screen has room for it. */
  isOpen?: boolean
}

/** The write key of a source, and what to paste to send it a call. */
export function SendCalls({ source: { id, writeKey }, isOpen: isOpenFirst }: SendCallsProps) {
  const system = useLive('GET /system', {}, 0, !isLimited())
  const [given, setGiven] = useState<string | null>(null)
  const [kind, setKind] = useState<SnippetKind>('curl')
  const [isOpen] = useState(() => isOpenFirst ?? isWide())
  if (writeKey === null)
    return (
      <aside class="card send-calls">
        <p class="faint">
          This is the built-in source of operational events. It has no write key: Postrider itself sends its
          calls.
        </p>
      </aside>
    )
  const known = given ?? system.data?.collectorUrl ?? ''
  const collector = known.trim().replace(/\/+$/, '') || 'https://YOUR-COLLECTOR'
  const code = snippets[kind](collector, writeKey)
  return (
    <aside class="card send-calls" aria-label={`Send calls to ${id}`}>
      <details open={isOpen}>
        <summary>
          <h2>Send it calls</h2>
        </summary>
        <h3>Write key</h3>
        <p class="copied">
          <code class="id">{writeKey}</code>
          <CopyButton text={writeKey} what="write key" />
        </p>
        <TextField
          label="Collector"
          value={known}
          change={setGiven}
          hint={
            <>
              <code>COLLECTOR_URL</code> says where it is.
            </>
          }
        />
        <Choice label="From" value={kind} choices={kinds} choose={setKind} />
        <div class="snippet">
          <pre tabIndex={0} role="region" aria-label="Snippet">
            {code}
          </pre>
          <CopyButton text={code} what="snippet" />
        </div>
      </details>
    </aside>
  )
}
