import { useLive } from '../../../api/live.ts'
import type { ApiFailure } from '../../../api/request.ts'
import { TextField } from '../../../components/fields.tsx'
import { OptionControl } from '../../../components/option-control.tsx'
import { optionFields } from '../../../components/options.ts'
import { Picker } from '../../../components/picker.tsx'
import type { Draft, DraftField } from './draft.ts'
import { PickEvents } from './pick-events.tsx'

const maxUrls = 5

interface FormFieldsProps {
  draft: Draft
  change: (edit: Partial<Draft>) => void
  failure: ApiFailure | null
}

/** What is wrong with a field, by the API; `urls.0.url` belongs to the first URL. */
export function faultsFor(failure: ApiFailure | null, field: string): string | undefined {
  const faults =
    failure?.fields.filter((each) => each.field === field || each.field.startsWith(`${field}.`)) ?? []
  return faults.length === 0 ? undefined : faults.map(({ message }) => message).join('; ')
}

export function FormFields(props: FormFieldsProps) {
  const { draft, change, failure } = props
  return (
    <div class="form-columns">
      <fieldset class="card form-card">
        <legend>Where calls go</legend>
        <TextField
          label="Name"
          value={draft.name}
          change={(name) => change({ name })}
          fault={faultsFor(failure, 'name')}
        />
        <UrlFields {...props} />
        <SourceFields {...props} />
      </fieldset>
      <fieldset class="card form-card">
        <legend>Which calls it gets, and how</legend>
        <OptionFields {...props} names={optionFields.destination.map(({ name }) => name)} />
        <p class="hint">A delete call always reaches it, so that it can forget a user.</p>
      </fieldset>
    </div>
  )
}

export function UrlFields({ draft, change, failure }: FormFieldsProps) {
  return (
    <>
      {draft.urls.map((url, index) => (
        <TextField
          key={index}
          label={draft.urls.length === 1 ? 'URL' : `URL ${index + 1}`}
          value={url}
          change={(to) => change({ urls: draft.urls.map((each, at) => (at === index ? to : each)) })}
          fault={faultsFor(failure, `urls.${index}`)}
          {...(index > 0 && { hint: 'Emptied, it is removed.' })}
        />
      ))}
      {faultsFor(failure, 'urls') && !failure!.fields.some(({ field }) => /^urls\.\d/.test(field)) && (
        <p class="fault">{faultsFor(failure, 'urls')}</p>
      )}
      {draft.urls.length < maxUrls && (
        <button
          type="button"
          class="button button-small form-more"
          onClick={() => change({ urls: [...draft.urls, ''] })}
        >
          Add a URL
        </button>
      )}
    </>
  )
}

/** A page of the API: others are in the file of settings. */
const maxSources = 200

export function SourceFields({ draft, change, failure }: FormFieldsProps) {
  const { data } = useLive('GET /sources', { query: { limit: maxSources } }, 0)
  return (
    <Picker
      label="Sources"
      choices={(data?.data ?? []).map(({ id, name, builtIn }) => ({
        value: id,
        text: name === id ? id : `${name} (${id})`,
        ...(builtIn && { hint: 'Operational events of Postrider itself.' }),
      }))}
      chosen={draft.sourceIds}
      change={(sourceIds) => change({ sourceIds })}
      fault={faultsFor(failure, 'sourceIds')}
      hint="Those whose calls it gets."
    />
  )
}

/** A control for each of these options, in the order of their rows. */
export function OptionFields({
  draft,
  change,
  failure,
  names,
}: FormFieldsProps & { names: readonly DraftField[] }) {
  return (
    <>
      {optionFields.destination
        .filter(({ name }) => names.includes(name))
        .map((field) => (
          <div key={field.name}>
            <OptionControl
              field={field}
              value={draft[field.name]}
              change={(to) => change({ [field.name]: to })}
              fault={faultsFor(failure, field.name)}
            />
            {field.name === 'events' && (
              <PickEvents
                sourceIds={draft.sourceIds}
                value={draft.events as string}
                change={(events) => change({ events })}
              />
            )}
          </div>
        ))}
    </>
  )
}
