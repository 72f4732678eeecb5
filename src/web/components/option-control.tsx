import type { OptionField } from '../../operators/option-fields.ts'
import { Checkbox, Select, TextArea, TextField } from './fields.tsx'
import { useState } from 'preact/hooks'
import { choicesOf, emptyMeans, isMap, type EditedMap, type EditedOption } from './options.ts'

interface OptionControlProps {
  field: OptionField
  value: EditedOption
  change: (to: EditedOption) => void
  fault?: string | undefined
}

/** The control that an option is changed with, by what it can be. */
export function OptionControl({ field, value, change, fault }: OptionControlProps) {
  const { name, label, text, type, choices, isNullable, isLong } = field
  if (typeof value === 'boolean')
    return (
      <>
        <Checkbox label={label} hint={hintOf(text)} checked={value} change={change} />
        {fault && <p class="fault">{fault}</p>}
      </>
    )
  if (isMap(value)) return <MapControl field={field} value={value} change={change} fault={fault} />
  if (typeof value !== 'string')
    return (
      <div class="field" role="group" aria-labelledby={`label-${name}`}>
        <p id={`label-${name}`} class="label">
          {label}
        </p>
        <div class="checkboxes">
          {choicesOf(field).map((choice) => (
            <Checkbox
              key={choice}
              label={choice}
              checked={value.includes(choice)}
              change={(isOn) => change(isOn ? [...value, choice] : value.filter((each) => each !== choice))}
            />
          ))}
        </div>
        {fault && <p class="fault">{fault}</p>}
      </div>
    )
  const given = { label, value, change, fault, hint: hintOf(text) }
  if (choices) return <Select {...given} choices={choices.map((choice) => [choice, choice] as const)} />
  if (isLong || type === 'list') return <TextArea {...given} />
  return <TextField {...given} {...(isNullable && { placeholder: emptyMeans(field) })} />
}

/** A text for the first key, and for each other one that has one or is asked for. */
function MapControl({
  field,
  value,
  change,
  fault,
}: Omit<OptionControlProps, 'value'> & { value: EditedMap }) {
  const { label, text, choices } = field
  const [asked, setAsked] = useState<readonly string[]>([])
  const all = choices ?? []
  const shown = all.filter((key, index) => index === 0 || key in value || asked.includes(key))
  const left = all.filter((key) => !shown.includes(key))
  return (
    <>
      {shown.map((key, index) => (
        <TextArea
          key={key}
          label={`${label}: ${key}`}
          rows={8}
          value={value[key] ?? ''}
          change={(to) => change({ ...value, [key]: to })}
          fault={index === 0 ? fault : undefined}
          {...(index === 0 && { hint: hintOf(text) })}
        />
      ))}
      {left.length > 0 && (
        <Select
          label={`${label} for one type more`}
          value=""
          change={(key) => setAsked([...asked, key])}
          choices={[['', 'choose a type'] as const, ...left.map((key) => [key, key] as const)]}
        />
      )}
    </>
  )
}

/** Empty is what the API calls null. */
const hintOf = (text: string): string => text.replaceAll('`', '').replace('null for', 'empty for')
