import type { ApiFailure } from '../../../api/request.ts'
import { Checkbox, Select, TextArea, TextField } from '../../../components/forms/field.tsx'
import { chosenTypes, type Draft, type DraftField } from './draft.ts'

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
        {draft.urls.length > 1 && (
          <Select
            label="Deliver to"
            value={draft.deliverTo}
            choices={[
              ['any', 'any URL: one that takes a call is enough'],
              ['every', 'every URL: each gets it'],
            ]}
            change={(deliverTo) => change({ deliverTo })}
            fault={faultOf('deliverTo')}
          />
        )}
        <TextField
          label="Rate limit"
          value={draft.maxRate}
          change={(maxRate) => change({ maxRate })}
          fault={faultOf('maxRate')}
          placeholder="none"
          hint="Attempts of all forwarders: 100/s or 6/m."
        />
        <TextField
          label="Requests in flight, at most"
          value={draft.maxInFlight}
          change={(maxInFlight) => change({ maxInFlight })}
          fault={faultOf('maxInFlight')}
          placeholder="no limit"
        />
        <Checkbox
          label="Standard Webhooks headers"
          hint="webhook-id, webhook-timestamp and webhook-signature too."
          checked={draft.standardWebhooks}
          change={(standardWebhooks) => change({ standardWebhooks })}
        />
        {faultOf('standardWebhooks') && <p class="fault">{faultOf('standardWebhooks')}</p>}
        <Checkbox
          label="Trace context"
          hint="Pass on the traceparent that a call came with."
          checked={draft.traceContext}
          change={(traceContext) => change({ traceContext })}
        />
      </fieldset>
      <fieldset class="card form-card">
        <legend>Which calls it gets</legend>
        <TextArea
          label="Sources"
          rows={Math.min(6, draft.sourceIds.split('\n').length + 1)}
          value={draft.sourceIds}
          change={(sourceIds) => change({ sourceIds })}
          fault={faultOf('sourceIds')}
          hint="Their ids, one a line."
        />
        <div class="field" role="group" aria-labelledby="call-types">
          <p id="call-types" class="label">
            Call types
          </p>
          <div class="checkboxes">
            {chosenTypes.map((type) => (
              <Checkbox
                key={type}
                label={type}
                checked={draft.types.includes(type)}
                change={(isOn) =>
                  change({
                    types: isOn ? [...draft.types, type] : draft.types.filter((each) => each !== type),
                  })
                }
              />
            ))}
          </div>
          {faultOf('types') && <p class="fault">{faultOf('types')}</p>}
        </div>
        <TextArea
          label="Events"
          value={draft.events}
          change={(events) => change({ events })}
          fault={faultOf('events')}
          hint="Names of track calls, one a line, letter by letter. Empty: all."
        />
        <TextArea
          label="Condition"
          value={draft.where}
          change={(where) => change({ where })}
          fault={faultOf('where')}
          hint={
            <>
              In CEL: <code>call.properties.total &gt;= 100</code>. Empty: all calls.
            </>
          }
        />
        <TextArea
          label="Left out of the body"
          value={draft.drop}
          change={(drop) => change({ drop })}
          fault={faultOf('drop')}
          hint={
            <>
              Paths, one a line: <code>context.ip</code>.
            </>
          }
        />
        <p class="hint">A delete call always reaches it, so that it can forget a user.</p>
      </fieldset>
    </div>
  )
}
