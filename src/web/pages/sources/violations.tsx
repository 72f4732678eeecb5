import type { ViolationAnswer } from '../../api/routes.ts'
import { countText, wordsOf } from '../../components/figures.ts'
import { PagedTable, type Column } from '../../components/table.tsx'
import { MessageLink } from '../../components/text.tsx'
import { Ago } from '../../components/time.tsx'

/** Calls that are shown at once; the others are behind a click. */
const shownCalls = 2

/** What calls of a source violate its tracking plan with, in the last day. */
export function Violations({ id, plan }: { id: string; plan: string }) {
  return (
    <section class="section" aria-labelledby="violations">
      <div class="section-head">
        <h2 id="violations">Violations of the plan {plan}</h2>
        <p>In the last 24 hours, the most frequent first.</p>
      </div>
      <PagedTable
        route="GET /plan-violations"
        asked={{ query: { source: id, plan, since: '24h' } }}
        what="violations"
        columns={columns}
        keyOf={({ event, path, rule, mode }) => JSON.stringify([event, path, rule, mode])}
        empty={{ title: 'No violations.', text: 'Every call that came in is as the plan says.' }}
        cursorName="violations"
      />
    </section>
  )
}

const columns: Column<ViolationAnswer>[] = [
  { head: 'Event', isName: true, cell: ({ event }) => <span class="words">{event}</span> },
  { head: 'Path', moves: 'narrow', cell: ({ path }) => <code>{path || '–'}</code> },
  { head: 'Rule', moves: 'narrow', cell: ({ rule }) => wordsOf(rule) },
  {
    head: 'Count',
    isNumber: true,
    cell: ({ count, mode }) => (
      <span class={mode === 'block' ? 'is-bad' : ''} title={mode === 'block' ? 'Kept back' : 'Delivered'}>
        {countText(count)}
      </span>
    ),
  },
  { head: 'Last seen', moves: 'narrow', cell: ({ lastAt }) => <Ago at={lastAt} /> },
  { head: 'Calls', moves: 'narrow', cell: ({ messageIds }) => <Calls messageIds={messageIds} /> },
]

function Calls({ messageIds }: { messageIds: readonly string[] }) {
  const links = (some: readonly string[]) =>
    some.map((messageId) => (
      <li key={messageId}>
        <MessageLink messageId={messageId} />
      </li>
    ))
  const more = messageIds.slice(shownCalls)
  return (
    <>
      <ul>{links(messageIds.slice(0, shownCalls))}</ul>
      {more.length > 0 && (
        <details>
          <summary>{more.length} more</summary>
          <ul>{links(more)}</ul>
        </details>
      )}
    </>
  )
}
