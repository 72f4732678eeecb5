// What the page shows of the dead letters, as the URL has it.
import { useLive } from '../../api/live.ts'
import { query, setQuery } from '../../app/address.ts'
import type { Group } from './list.tsx'

export const noneText = '(none)'
export const unreadableText = 'unreadable'

export interface ChosenFilters {
  destination: string
  reason: string
  status: string
  /** As the API takes it; empty: all that are kept. */
  since: string
  until: string
}

/** What `since` is unless the URL names one. */
const usualSince = '24h'
const always = 'all'

export function chosenFilters(): ChosenFilters {
  const of = (name: string) => query.value.get(name) ?? ''
  const since = query.value.get('since') ?? usualSince
  return {
    destination: of('destination'),
    reason: of('reason'),
    status: of('status'),
    since: since === always ? '' : since,
    until: of('until'),
  }
}

/** A link that leads here to replay says so: all that it filters for is selected from the beginning. */
export const isAllSelected = (): boolean => query.value.get('select') === 'all'

export function choose(changes: Partial<ChosenFilters>): void {
  const { since } = changes
  setQuery({
    ...changes,
    ...(since !== undefined && { since: since === '' ? always : since === usualSince ? null : since }),
    // Another list begins at its first page.
    cursor: null,
    select: null,
  })
}

/** As many as a page of the API has. */
const limit = 200

/** Replays of dead letters, the newest first. */
export const useReplays = () =>
  useLive('GET /replays', { query: { of: 'dead_letters', order: 'newest', limit } }, 5_000)

/** A group's value of each filter, as the filter has it. */
export const filterValues = ({
  destinationId,
  reason,
  status,
}: Omit<Group, 'count' | 'firstAt' | 'lastAt'>) => ({
  destination: destinationId ?? noneText,
  reason: reason ?? unreadableText,
  status: String(status ?? noneText),
})

export const isChosen = (group: Group): boolean => {
  const { destination, reason, status } = chosenFilters()
  const values = filterValues(group)
  return (
    (destination === '' || values.destination === destination) &&
    (reason === '' || values.reason === reason) &&
    (status === '' || values.status === status)
  )
}
