import { useState } from 'preact/hooks'
import { useLongRequest } from '../../api/long-request.ts'
import type { DeadLetterGroups } from '../../api/routes.ts'
import { now } from '../../app/clock.ts'
import { PageTitle } from '../../app/page-title.tsx'
import { may } from '../../app/session.ts'
import { CopyAsCurl } from '../../components/copy.tsx'
import { countOf, countText, relativeText } from '../../components/figures.ts'
import { Loaded } from '../../components/loaded.tsx'
import { Progress } from '../../components/progress.tsx'
import { Replays } from '../../components/replays.tsx'
import { FilterFields, isChosen } from './filter-fields.tsx'
import { chosenFilters, isAllSelected } from './filters.ts'
import { groupKey, Groups, type Group } from './groups.tsx'
import { List } from './list.tsx'
import { ReplayDialog, type ReplayChoice } from './replay-dialog.tsx'
import { useReplays } from './replays-of-dead-letters.ts'

interface Looked {
  looked: number
  total: number
}

/** What finally failed: counted by kind, and one by one; and its replay. */
export function DeadLetters() {
  const { since, until } = chosenFilters()
  const asked = { query: { since, until } }
  const groups = useLongRequest<'GET /dead-letters/groups', Looked>('GET /dead-letters/groups', asked)
  const { data, progress, isRunning, loadedAt } = groups
  const replays = useReplays()
  return (
    <>
      <PageTitle title="Dead letters">
        <button type="button" class="button" disabled={isRunning} onClick={groups.reload}>
          {isRunning ? 'Counting …' : 'Count again'}
        </button>
        <CopyAsCurl route="GET /dead-letters" asked={{ query: { ...chosenFilters() } }} />
      </PageTitle>
      <Replays live={replays} max={1} />
      <FilterFields groups={data?.groups ?? []} />
      {data === null && progress !== null && progress.total > 0 ? (
        <Progress label="Dead letters looked at" done={progress.looked} total={progress.total} />
      ) : (
        <Loaded live={groups} what="dead letters">
          {(found) => <Found found={found} countedAt={loadedAt} started={replays.reload} />}
        </Loaded>
      )}
    </>
  )
}

interface Asked {
  choice: ReplayChoice
  what: string
}

const none: ReadonlySet<string> = new Set()

function Found({
  found,
  countedAt,
  started,
}: {
  found: DeadLetterGroups
  countedAt: number | null
  started: () => void
}) {
  const shown = found.groups.filter(isChosen)
  const [keys, selectKeys] = useState(() => (isAllSelected() ? new Set(shown.map(groupKey)) : none))
  const [ids, selectIds] = useState(none)
  const [asked, ask] = useState<Asked | null>(null)
  const selected = shown.filter((group) => keys.has(groupKey(group)))
  const count = selected.reduce((sum, group) => sum + group.count, 0)
  const replayGroups = () =>
    ask({
      choice: {
        deadLetters: {
          kinds: selected.map(({ reason, status, destinationId }) => ({ reason, status, destinationId })),
        },
        ...periodOf(selected),
      },
      what: selected.length === 1 ? groupText(count, selected[0]!) : countOf(count, 'dead letter'),
    })
  return (
    <>
      <section class="section" aria-labelledby="groups-title">
        <div class="section-head">
          <h2 id="groups-title">By reason and last status</h2>
          {countedAt !== null && <p>Counted {relativeText(countedAt, now.value)}</p>}
          <ReplayButton count={count} replay={replayGroups} />
        </div>
        <Groups found={found} selected={keys} select={selectKeys} />
      </section>
      {shown.length > 0 && (
        <section class="section" aria-labelledby="list-title">
          <div class="section-head">
            <h2 id="list-title">One by one</h2>
            <ReplayButton
              count={ids.size}
              replay={() =>
                ask({ choice: { deadLetters: { ids: [...ids] } }, what: countOf(ids.size, 'dead letter') })
              }
            />
          </div>
          <List selected={ids} select={selectIds} />
        </section>
      )}
      {asked && <ReplayDialog {...asked} started={started} close={() => ask(null)} />}
    </>
  )
}

/**
 * Exactly those that were counted, by the clocks of those who wrote them: what has failed since is not replayed. A record
 * can hold times that no calendar does; then there is no bound.
 */
function periodOf(groups: readonly Group[]): { since?: string; until?: string } {
  const since = Math.min(...groups.map(({ firstAt }) => Date.parse(firstAt)))
  const until = Math.max(...groups.map(({ lastAt }) => Date.parse(lastAt))) + 1
  if (Number.isNaN(since + until)) return {}
  return { since: new Date(since).toISOString(), until: new Date(until).toISOString() }
}

/** `412 × 503 from crm`. */
function groupText(count: number, { status, destinationId }: Group): string {
  const where = destinationId === null ? '' : ` from ${destinationId}`
  return `${countText(count)} × ${status ?? 'no attempt'}${where}`
}

/** What was selected can be sent again, by those who may. */
function ReplayButton({ count, replay }: { count: number; replay: () => void }) {
  if (!may('operator')) return null
  return (
    <button
      type="button"
      class="button button-primary"
      disabled={count === 0}
      title={count === 0 ? 'Select what to send again.' : undefined}
      onClick={replay}
    >
      {count === 0 ? 'Replay selected' : `Replay ${countOf(count, 'dead letter')}`}
    </button>
  )
}
