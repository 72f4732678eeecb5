import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

interface FieldProps {
  label: string
  /** What to give, shown below. */
  hint?: ComponentChildren
  /** What is wrong with it. */
  fault?: string | undefined
}

interface Described {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': boolean | undefined
}

/** A labelled control with its hint and what is wrong with it, both of which screen readers read with it. */
function Field({
  label,
  hint,
  fault,
  children,
}: FieldProps & { children: (given: Described) => ComponentChildren }) {
  const id = useId()
  const described = [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(' ')
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': described || undefined, 'aria-invalid': fault ? true : undefined })}
      {hint && (
        <p id={`${id}-hint`} class="hint">
          {hint}
        </p>
      )}
      {fault && (
        <p id={`${id}-fault`} class="fault">
          {fault}
        </p>
      )}
    </div>
  )
}

interface InputProps {
  type?: 'text' | 'search' | 'password' | 'datetime-local'
  name?: string
  autocomplete?: string
  autofocus?: boolean
  placeholder?: string
}

export function TextField({
  label,
  hint,
  fault,
  value,
  change,
  ...rest
}: FieldProps & InputProps & { value: string; change: (value: string) => void }) {
  return (
    <Field label={label} hint={hint} fault={fault}>
      {(given) => (
        <input
          autocomplete="off"
          spellcheck={false}
          // Preact's types want one of these types at a time.
          {...(rest as { type?: 'text' })}
          {...given}
          value={value}
          onInput={(event) => change(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

export function TextArea({
  label,
  hint,
  fault,
  value,
  change,
  rows = 3,
}: FieldProps & { value: string; change: (value: string) => void; rows?: number }) {
  return (
    <Field label={label} hint={hint} fault={fault}>
      {(given) => (
        <textarea
          {...given}
          rows={rows}
          spellcheck={false}
          value={value}
          onInput={(event) => change(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

export function Select<T extends string>({
  label,
  hint,
  fault,
  value,
  choices,
  change,
}: FieldProps & {
  value: T
  choices: readonly (readonly [value: T, text: string])[]
  change: (value: T) => void
}) {
  return (
    <Field label={label} hint={hint} fault={fault}>
      {(given) => (
        <select {...given} value={value} onChange={(event) => change(event.currentTarget.value as T)}>
          {choices.map(([each, text]) => (
            <option key={each} value={each}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

export function Checkbox({
  label,
  hint,
  checked,
  change,
}: {
  label: string
  hint?: string
  checked: boolean
  change: (checked: boolean) => void
}) {
  const id = useId()
  return (
    <div class="checkbox">
      <input
        id={id}
        type="checkbox"
        checked={checked}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => change(event.currentTarget.checked)}
      />
      <div>
        <label for={id}>{label}</label>
        {hint && (
          <p id={`${id}-hint`} class="hint">
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}

/** A choice of a few, side by side: as buttons, of which one is pressed. */
export function Choice<T extends string>({
  label,
  value,
  choices,
  choose,
}: {
  label: string
  value: T
  choices: readonly (readonly [value: T, text: string])[]
  choose: (value: T) => void
}) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {choices.map(([each, text]) => (
        <button key={each} type="button" aria-pressed={each === value} onClick={() => choose(each)}>
          {text}
        </button>
      ))}
    </div>
  )
}

/** The id of something new. */
export const IdField = ({ value, change }: { value: string; change: (id: string) => void }) => (
  <TextField
    label="Id"
    value={value}
    change={change}
    autofocus
    hint="Up to 64 of a-z, 0-9, “_” and “-”. It can never be changed."
  />
)
