import { useEffect, useRef, useState } from 'preact/hooks'
import { linkTo, pathTo } from '../../../../console/page-paths.ts'
import { useLive } from '../../../api/live.ts'
import { ApiFailure, request } from '../../../api/request.ts'
import { forgetUnsaved, go, query, useUnsaved } from '../../../app/address.ts'
import { TextArea, TextField } from '../../../components/fields.tsx'
import { Lazy } from '../../../components/lazy.tsx'
import { Failure, say } from '../../../components/notices.tsx'
import { optionFields } from '../../../components/options.ts'
import { newSecret, randomKey } from '../../../components/random.ts'
import { CopyButton } from '../../../components/text.tsx'
import { bodyOf, changedFields, newDraft, type Draft, type DraftField } from './draft.ts'
import { faultsFor, OptionFields, SourceFields, UrlFields } from './form-fields.tsx'
import { givenLogins, headerHint, headersOf, LoginFields, noLogins, type TypedLogins } from './logins.tsx'
import { exampleUrl } from './receiver-examples.ts'
import { VerifySnippet } from './verify.tsx'

const testDialog = () => import('../../../components/test-dialog.tsx').then(({ TestDialog }) => TestDialog)

/** What most choose; the others are behind "More". */
const firstOptions: readonly DraftField[] = ['types', 'events', 'where']
const moreOptions = optionFields.destination
  .map(({ name }) => name)
  .filter((name) => !firstOptions.includes(name))

/** What stands in the form beside what every destination has. */
interface Own {
  /** Null while it follows the name. */
  id: string | null
  secret: string
  headers: string
  logins: TypedLogins
}

/** A new destination as a form; its test is before it is saved, and its secret is shown here only. */
export function NewForm() {
  const source = query.value.get('source')
  const [draft, setDraft] = useState<Draft>(() => ({
    ...newDraft(source === null ? [] : [source]),
    name: isBeginning() ? 'My receiver' : '',
  }))
  const [own, setOwn] = useState<Own>(() => ({
    id: null,
    secret: newSecret(),
    headers: '',
    logins: noLogins,
  }))
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const [isTesting, setTesting] = useState(false)
  const [isSaving, setSaving] = useState(false)
  // The same for each try: what was made by one whose answer was lost is not made again.
  const key = useRef(randomKey())
  const change = (edit: Partial<Draft>) => setDraft((before) => ({ ...before, ...edit }))
  useOnlySource(source === null, (id) => change({ sourceIds: [id] }))
  const id = own.id ?? idFrom(draft.name)
  const body = { ...createBody(draft, own), id }
  const form = { draft, change, failure }
  useUnsaved(draft.urls.some((url) => url.trim() !== '') ? 'The new destination' : null)
  const create = async (event: Event) => {
    event.preventDefault()
    setSaving(true)
    setFailure(null)
    try {
      await request('POST /destinations', { body, headers: { 'Idempotency-Key': key.current } })
      say(`${id} is made: calls go to it from now on`)
      forgetUnsaved()
      go(isBeginning() ? linkTo('begin', beginAt(source, id)) : pathTo('destination', { id }))
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      // Another body under the same key is refused.
      if (error.status !== 0) key.current = randomKey()
      setFailure(error)
      setSaving(false)
    }
  }
  const isMoreWrong = [...moreOptions, ...Object.keys(noLogins)].some(
    (name) => faultsFor(failure, name) !== undefined,
  )
  return (
    <>
      <form onSubmit={create}>
        {failure && <Failure failure={failure} />}
        <div class="form-columns">
          <div>
            <fieldset class="card form-card">
              <legend>Where calls go</legend>
              <TextField
                label="Name"
                value={draft.name}
                change={(name) => change({ name })}
                hint="For people."
                fault={faultsFor(failure, 'name')}
              />
              <TextField
                label="Id"
                value={id}
                change={(to) => setOwn({ ...own, id: to })}
                hint="Up to 64 of a-z, 0-9, “_” and “-”. It can never be changed."
                fault={faultsFor(failure, 'id')}
              />
              <UrlFields {...form} />
              {draft.urls.length === 1 && draft.urls[0] === '' && (
                <button
                  type="button"
                  class="button button-small form-more"
                  onClick={() => change({ urls: [exampleUrl] })}
                >
                  Use the example receiver on this machine
                </button>
              )}
              <SourceFields {...form} />
            </fieldset>
            <fieldset class="card form-card">
              <legend>Which calls it gets</legend>
              <OptionFields {...form} names={firstOptions} />
              <p class="hint">A delete call always reaches it, so that it can forget a user.</p>
              <details class="form-more-part" open={isMoreWrong}>
                <summary>More: headers, limits, form, retries, login</summary>
                <TextArea
                  label="Static headers"
                  value={own.headers}
                  change={(headers) => setOwn({ ...own, headers })}
                  hint={`For each URL. ${headerHint}`}
                  fault={headerFault(failure)}
                />
                <OptionFields {...form} names={moreOptions} />
                <LoginFields
                  typed={own.logins}
                  change={(edit) => setOwn({ ...own, logins: { ...own.logins, ...edit } })}
                  failure={failure}
                />
              </details>
            </fieldset>
          </div>
          <fieldset class="card form-card">
            <legend>How its receiver knows that they are ours</legend>
            <div class="with-button">
              <TextField
                label="Secret"
                value={own.secret}
                change={(secret) => setOwn({ ...own, secret })}
                hint="Signs each request. Copy it now: it is kept encrypted, and never shown again. Empty: requests are not signed."
                fault={faultsFor(failure, 'sharedSecret')}
              />
              <CopyButton text={own.secret} what="the secret" />
            </div>
            {own.secret !== '' && <VerifySnippet secret={own.secret} />}
          </fieldset>
        </div>
        <div class="form-buttons">
          <p class="faint">Nothing is kept before you create it.</p>
          <button type="button" class="button" onClick={() => setTesting(true)}>
            Test …
          </button>
          <button type="submit" class="button button-primary" disabled={isSaving}>
            {isSaving ? 'Creating …' : 'Create destination'}
          </button>
        </div>
      </form>
      {isTesting && (
        <Lazy
          load={testDialog}
          what="the test"
          props={{
            id: id === '' ? 'the new destination' : id,
            draft: body,
            sourceIds: draft.sourceIds,
            close: () => setTesting(false),
          }}
        />
      )}
    </>
  )
}

/** Picks the source where there is one only. */
function useOnlySource(isWanted: boolean, pick: (id: string) => void): void {
  const { data } = useLive('GET /sources', { query: { limit: 200 } }, 0, isWanted)
  const own = data?.data.filter(({ builtIn }) => !builtIn) ?? []
  const only = own.length === 1 ? own[0]!.id : null
  useEffect(() => {
    if (only !== null) pick(only)
  }, [only])
}

/** Whether it is a step of the page that leads to the first webhook. */
const isBeginning = (): boolean => query.value.get('from') === 'begin'

const beginAt = (source: string | null, destination: string): Record<string, string> => ({
  ...(source !== null && { source }),
  destination,
})

const maxIdLength = 64

const idFrom = (name: string): string =>
  name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9_]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, maxIdLength)

function createBody(draft: Draft, { secret, headers: lines, logins }: Own): Record<string, unknown> {
  const headers = headersOf(lines)
  const { urls, ...rest } = bodyOf(draft, [
    ...new Set<DraftField>(['name', 'sourceIds', 'urls', ...changedFields(newDraft([]), draft)]),
  ])
  return {
    ...rest,
    urls: (urls as { url: string }[]).map((each) => ({
      ...each,
      ...(Object.keys(headers).length > 0 && { headers }),
    })),
    ...givenLogins(logins),
    ...(secret !== '' && { sharedSecret: secret }),
  }
}

/** The API names a header by its URL and its name. */
const headerFault = (failure: ApiFailure | null): string | undefined =>
  failure?.fields.find(({ field }) => /^urls\.\d+\.headers/.test(field))?.message
