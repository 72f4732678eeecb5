import type { OptionField } from '../../operators/option-fields.ts'
import { Checkbox, Select, TextArea, TextField } from './fields.tsx'
import { choicesOf, type EditedOption } from './options.ts'

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
  return <TextField {...given} {...(isNullable && { placeholder: 'none' })} />
}

/** Empty is what the API calls null. */
const hintOf = (text: string): string => text.replaceAll('`', '').replace('null for', 'empty for')
