import type { ApiFailure } from '../../../api/request.ts'
import { TextArea, TextField } from '../../../components/fields.tsx'
import { OptionControl } from '../../../components/option-control.tsx'
import { optionFields } from '../../../components/options.ts'
import type { Draft, DraftField } from './draft.ts'

const maxUrls = 5

interface FormFieldsProps {
  draft: Draft
  change: (edit: Partial<Draft>) => void
  failure: ApiFailure | null
}

/** What is wrong with a field, by the API; `urls.0.url` belongs to the first URL. */
function faultsFor(failure: ApiFailure | null, field: string): string | undefined {
  const faults =
    failure?.fields.filter((each) => each.field === field || each.field.startsWith(`${field}.`)) ?? []
  return faults.length === 0 ? undefined : faults.map(({ message }) => message).join('; ')
}

export function FormFields({ draft, change, failure }: FormFieldsProps) {
  const faultOf = (field: DraftField) => faultsFor(failure, field)
  return (
    <div class="form-columns">
      <fieldset class="card form-card">
        <legend>Where calls go</legend>
        <TextField
          label="Name"
          value={draft.name}
          change={(name) => change({ name })}
          fault={faultOf('name')}
        />
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
        <TextArea
          label="Sources"
          rows={Math.min(6, draft.sourceIds.split('\n').length + 1)}
          value={draft.sourceIds}
          change={(sourceIds) => change({ sourceIds })}
          fault={faultOf('sourceIds')}
          hint="Their ids, one a line."
        />
      </fieldset>
      <fieldset class="card form-card">
        <legend>Which calls it gets, and how</legend>
        {optionFields.destination.map((field) => (
          <OptionControl
            key={field.name}
            field={field}
            value={draft[field.name]}
            change={(to) => change({ [field.name]: to })}
            fault={faultOf(field.name)}
          />
        ))}
        <p class="hint">A delete call always reaches it, so that it can forget a user.</p>
      </fieldset>
    </div>
  )
}
