import { useState } from 'preact/hooks'
import { useLongRequest } from '../../api/request.ts'
import type { DeadLetterGroups } from '../../api/routes.ts'
import { PageTitle } from '../../app/shell.tsx'
import { Select } from '../../components/fields.tsx'
import { countOf, countText, relativeText, wordsOf } from '../../components/figures.ts'
import { Progress } from '../../components/notices.tsx'
import { PeriodFields } from '../../components/period.tsx'
import { ReplaysIfAny } from '../../components/replays-if-any.tsx'
import { now } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'
import {
  chosenFilters,
  isAllSelected,
  useReplays,
  choose,
  filterValues,
  isChosen,
  noneText,
} from './filters.ts'
import { groupKey, Groups, type Group, List } from './list.tsx'
import { ReplayDialog, type ReplayChoice } from './replay-dialog.tsx'

interface Looked {
  looked: number
  total: number
}

/** What finally failed: counted by kind, and one by one; and its replay. */
export function DeadLetters() {
  const { since, until } = chosenFilters()
  const asked = { query: { since, until, replays: true } }
  const groups = useLongRequest<'GET /dead-letters/groups', Looked>('GET /dead-letters/groups', asked)
  const { data, progress, isRunning, loadedAt } = groups
  const replays = useReplays()
  return (
    <>
      <PageTitle
        title="Dead letters"
        curl={{ route: 'GET /dead-letters', asked: { query: { ...chosenFilters() } } }}
      >
        <button type="button" class="button" disabled={isRunning} onClick={groups.reload}>
          {isRunning ? 'Counting …' : 'Count again'}
        </button>
      </PageTitle>
      <ReplaysIfAny live={replays} max={1} />
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
  const count = selected.reduce((sum, group) => sum + group.count, 0) || ids.size
  // One selection at a time: it says what the one button sends.
  const select = (of: { keys?: ReadonlySet<string>; ids?: ReadonlySet<string> }) => {
    selectKeys(of.keys ?? none)
    selectIds(of.ids ?? none)
  }
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
  const replayIds = () =>
    ask({ choice: { deadLetters: { ids: [...ids] } }, what: countOf(ids.size, 'dead letter') })
  return (
    <>
      <section class="section" aria-labelledby="groups-title">
        <div class="section-head">
          <h2 id="groups-title">By reason and last status</h2>
          {countedAt !== null && <p>Counted {relativeText(countedAt, now.value)}</p>}
        </div>
        <Groups found={found} selected={keys} select={(keys) => select({ keys })} />
      </section>
      {count > 0 && (
        <SelectionBar
          count={count}
          replay={ids.size > 0 ? replayIds : replayGroups}
          clear={() => select({})}
        />
      )}
      {shown.length > 0 && (
        <section class="section" aria-labelledby="list-title">
          <div class="section-head">
            <h2 id="list-title">One by one</h2>
          </div>
          <List selected={ids} select={(ids) => select({ ids })} />
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

/** What was selected, and that it can be sent again: at the bottom of the window, whichever row was ticked. */
function SelectionBar({ count, replay, clear }: { count: number; replay: () => void; clear: () => void }) {
  return (
    <section class="selection-bar" aria-label="What is selected">
      <p role="status">{countText(count)} selected</p>
      <button type="button" class="button" onClick={clear}>
        Select none
      </button>
      <button type="button" class="button button-primary" onClick={replay}>
        Replay {countOf(count, 'dead letter')}
      </button>
    </section>
  )
}

const periods = [
  ['1h', 'Last hour'],
  ['24h', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
  ['', 'All that are kept'],
] as const

export function FilterFields({ groups }: { groups: readonly Group[] }) {
  const { since, until } = chosenFilters()
  return (
    <div class="filters filters-many">
      <PeriodFields label="Failed" since={since} until={until} periods={periods} choose={choose} />
      <OneOf label="Destination" name="destination" groups={groups} none="never became a delivery" />
      <OneOf label="Reason" name="reason" groups={groups} />
      <OneOf label="Last status" name="status" groups={groups} none="no attempt" />
    </div>
  )
}

/** A filter with what there is to choose of, and how many dead letters each has. */
function OneOf({
  label,
  name,
  groups,
  none = noneText,
}: {
  label: string
  name: 'destination' | 'reason' | 'status'
  groups: readonly Group[]
  none?: string
}) {
  const value = chosenFilters()[name]
  const counts = new Map<string, number>(value === '' ? [] : [[value, 0]])
  for (const group of groups) {
    const each = filterValues(group)[name]
    counts.set(each, (counts.get(each) ?? 0) + group.count)
  }
  const textOf = (each: string) => (each === noneText ? none : name === 'destination' ? each : wordsOf(each))
  const choices = [...counts]
    .sort((a, b) => b[1] - a[1])
    .map(([each, count]) => [each, `${textOf(each)} (${countText(count)})`] as const)
  return (
    <Select
      label={label}
      value={value}
      choices={[['', 'All'], ...choices]}
      change={(to) => choose({ [name]: to })}
    />
  )
}
