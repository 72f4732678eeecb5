type Keys = ReadonlySet<string>

/** Selects a row of a table. */
export function Tick({
  label,
  value,
  selected,
  select,
}: {
  label: string
  value: string
  selected: Keys
  select: (keys: Keys) => void
}) {
  return (
    <input
      type="checkbox"
      class="tick"
      aria-label={label}
      checked={selected.has(value)}
      onChange={(event) => {
        const keys = new Set(selected)
        if (event.currentTarget.checked) keys.add(value)
        else keys.delete(value)
        select(keys)
      }}
    />
  )
}

/** Selects all rows of a table, or none. */
export function TickAll({
  what,
  keys,
  selected,
  select,
}: {
  what: string
  keys: readonly string[]
  selected: Keys
  select: (keys: Keys) => void
}) {
  return (
    <input
      type="checkbox"
      class="tick"
      aria-label={`Select all ${what}`}
      checked={keys.length > 0 && keys.every((key) => selected.has(key))}
      onChange={(event) => select(new Set(event.currentTarget.checked ? keys : []))}
    />
  )
}
