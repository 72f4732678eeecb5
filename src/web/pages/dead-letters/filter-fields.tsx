import type { DeadLetterGroups } from '../../api/routes.ts'
import { now } from '../../app/clock.ts'
import { TextField, Select } from '../../components/forms/field.tsx'
import { countText, wordsOf } from '../../components/figures.ts'
import { choose, chosenFilters, noneText, unreadableText } from './filters.ts'

type Group = DeadLetterGroups['groups'][number]

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

type Period = '1h' | '24h' | '7d' | '' | 'between'

const periods = [
  ['1h', 'Last hour'],
  ['24h', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
  ['', 'All that are kept'],
  ['between', 'Between two times'],
] as const

export function FilterFields({ groups }: { groups: readonly Group[] }) {
  const chosen = chosenFilters()
  const period = (['1h', '24h', '7d', ''] as const).find(
    (each) => chosen.until === '' && each === chosen.since,
  )
  const choosePeriod = (to: Period) =>
    to === 'between'
      ? choose({ since: isoAt(now.value - 3_600_000), until: isoAt(now.value) })
      : choose({ since: to, until: '' })
  return (
    <div class="filters filters-many">
      <Select label="Failed" value={period ?? 'between'} choices={periods} change={choosePeriod} />
      {period === undefined && (
        <>
          <Moment label="From" value={chosen.since} change={(since) => choose({ since })} />
          <Moment label="Until" value={chosen.until} change={(until) => choose({ until })} />
        </>
      )}
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

/** A time in the browser's zone; the URL has it in UTC. */
function Moment({ label, value, change }: { label: string; value: string; change: (iso: string) => void }) {
  const at = Date.parse(value)
  return (
    <TextField
      label={label}
      type="datetime-local"
      value={Number.isNaN(at) ? '' : localText(at)}
      change={(text) => {
        const given = Date.parse(text)
        if (!Number.isNaN(given)) change(isoAt(given))
      }}
    />
  )
}

/** Whole minutes: what a person types. */
const isoAt = (at: number): string => new Date(Math.floor(at / 60_000) * 60_000).toISOString()

function localText(at: number): string {
  const date = new Date(at)
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
