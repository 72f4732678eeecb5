import { Select, TextField } from './fields.tsx'
import { now } from './time.tsx'

/** A period of a list, as the API takes it: a duration ago or an ISO time; empty for no bound. */
export interface ChosenPeriod {
  since: string
  until: string
}

const between = 'between'

/** What is chosen by time: a stretch up to now, or from one time until another. */
export function PeriodFields({
  label,
  since,
  until,
  periods,
  choose,
}: ChosenPeriod & {
  label: string
  /** Stretches up to now. */
  periods: readonly (readonly [since: string, text: string])[]
  choose: (period: ChosenPeriod) => void
}) {
  const isListed = until === '' && periods.some(([each]) => each === since)
  return (
    <>
      <Select
        label={label}
        value={isListed ? since : between}
        choices={[...periods, [between, 'Between two times']]}
        change={(to) =>
          choose(
            to === between
              ? { since: isoAt(now.value - 3_600_000), until: isoAt(now.value) }
              : { since: to, until: '' },
          )
        }
      />
      {!isListed && (
        <>
          <Moment label="From" value={since} change={(to) => choose({ since: to, until })} />
          <Moment label="Until" value={until} change={(to) => choose({ since, until: to })} />
        </>
      )}
    </>
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
