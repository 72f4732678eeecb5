import { useId, useState } from 'preact/hooks'
import { Checkbox, TextField } from './fields.tsx'
import { countText } from './figures.ts'

export interface PickerChoice {
  value: string
  text: string
  /** Said beside it. */
  hint?: string
}

interface PickerProps {
  label: string
  choices: readonly PickerChoice[]
  chosen: readonly string[]
  change: (chosen: string[]) => void
  hint?: string
  fault?: string | undefined
}

/** From here on a filter is worth its place. */
const manyChoices = 9
const maxShown = 200

/** Several of what there is, each with a tick. What is chosen and is not among the choices is shown too. */
export function Picker({ label, choices, chosen, change, hint, fault }: PickerProps) {
  const id = useId()
  const [filter, setFilter] = useState('')
  const known = new Set(choices.map(({ value }) => value))
  const all: readonly PickerChoice[] = [
    ...chosen.flatMap((value) => (known.has(value) ? [] : [{ value, text: value }])),
    ...choices,
  ]
  const wanted = filter.toLowerCase()
  const found = all.filter(({ value, text }) => `${value}\n${text}`.toLowerCase().includes(wanted))
  const shown = found.slice(0, maxShown)
  return (
    <div class="field" role="group" aria-labelledby={id} aria-describedby={fault ? `${id}-fault` : undefined}>
      <p id={id} class="label">
        {label}
      </p>
      {all.length > manyChoices && (
        <TextField label={`Filter ${label.toLowerCase()}`} type="search" value={filter} change={setFilter} />
      )}
      <div class="picks">
        {shown.map(({ value, text, hint: more }) => (
          <Checkbox
            key={value}
            label={text}
            {...(more !== undefined && { hint: more })}
            checked={chosen.includes(value)}
            change={(isOn) => change(isOn ? [...chosen, value] : chosen.filter((each) => each !== value))}
          />
        ))}
      </div>
      {shown.length < found.length && (
        <p class="hint">{countText(found.length - shown.length)} more: filter for them.</p>
      )}
      {hint && <p class="hint">{hint}</p>}
      {fault && (
        <p id={`${id}-fault`} class="fault">
          {fault}
        </p>
      )}
    </div>
  )
}
