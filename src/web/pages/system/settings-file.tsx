import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useLive } from '../../api/live.ts'
import { ApiFailure, request } from '../../api/request.ts'
import type { ApplyAnswer } from '../../api/routes.ts'
import { useUnsaved } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { ActionDialog } from '../../components/dialog.tsx'
import { Checkbox, TextArea, TextField } from '../../components/fields.tsx'
import { countOf } from '../../components/figures.ts'
import { Folded } from '../../components/folded.tsx'
import { Failure, say } from '../../components/notices.tsx'
import { LongText } from '../../components/text.tsx'
import { Loaded } from '../../components/views.tsx'
import { SystemTabs } from './system-tabs.tsx'

/** The settings as a file: as they are, what another one would change, and that change. */
export function SettingsFile() {
  const live = useLive('GET /settings/export', {}, 0)
  return (
    <>
      <PageTitle title="Settings as code" curl={{ route: 'GET /settings/export' }} />
      <SystemTabs />
      <Loaded live={live} what="the settings">
        {({ version, settings }) => {
          const text = JSON.stringify(settings, null, 2)
          return (
            <>
              <section class="section" aria-labelledby="as-they-are">
                <div class="section-head">
                  <h2 id="as-they-are">As they are</h2>
                  <p>
                    Version {version}. Secrets are references to variables. The commands of{' '}
                    <code>postrider settings</code> take the same file, as JSON or YAML.
                  </p>
                </div>
                <LongText text={text} what="settings" />
                <div class="form-actions">
                  <a
                    class="button"
                    href={`data:application/json;charset=utf-8,${encodeURIComponent(`${text}\n`)}`}
                    download={`postrider-settings-${version}.json`}
                  >
                    Save as a file
                  </a>
                </div>
              </section>
              {may('admin') && (
                <Change settings={settings} text={text} version={version} reload={live.reload} />
              )}
            </>
          )
        }}
      </Loaded>
    </>
  )
}

/** What was typed, by the variables that the file refers to. */
type TypedSecrets = Readonly<Record<string, string>>

/** What an edited file would change, and applying it. */
interface Difference {
  settings: object
  secrets: TypedSecrets
  report: ApplyAnswer
}

interface ChangeProps {
  /** As they are. */
  settings: object
  text: string
  version: number
  reload: () => void
}

function Change({ settings: before, text, version, reload }: ChangeProps) {
  const [edited, setEdited] = useState(text)
  const [isPruning, setPruning] = useState(false)
  const [typed, setTyped] = useState<TypedSecrets>({})
  const [difference, setDifference] = useState<Difference | null>(null)
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const [isApplying, setApplying] = useState(false)
  const settings = parsedFile(edited)
  const there = secretsIn(before)
  const wanted = [...(settings ? secretsIn(settings) : [])]
  useUnsaved(edited === text ? null : 'The file that you edited')
  // A difference is to what was given, and to nothing that came after it.
  const given = useRef(0)
  useEffect(() => {
    given.current++
    setDifference(null)
  }, [edited, isPruning, typed])
  // Somebody else's change, or one's own: what is not edited follows it.
  useEffect(() => setEdited(text), [version])
  const compare = async (event: Event) => {
    event.preventDefault()
    if (settings === null) return
    setFailure(null)
    const asked = given.current
    const pairs = wanted.flatMap(([name]) => (typed[name] ? [[name, typed[name]] as const] : []))
    const secrets = Object.fromEntries(pairs)
    try {
      const { data } = await request('POST /settings/apply', {
        body: { settings, secrets, prune: isPruning, dryRun: true },
      })
      if (given.current === asked) setDifference({ settings, secrets, report: data })
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      if (given.current === asked) setFailure(error)
    }
  }
  return (
    <section class="section" aria-labelledby="change">
      <div class="section-head">
        <h2 id="change">Change them</h2>
        <p>Each thing stands in the file whole: what is left out of it has its default.</p>
      </div>
      <form class="card padded" onSubmit={compare}>
        <TextArea
          label="File, as JSON"
          rows={16}
          value={edited}
          change={setEdited}
          fault={settings === null ? 'This is no JSON object.' : undefined}
        />
        <Checkbox
          label="Disable what is not in it"
          hint="Sources and destinations that the file does not have. Nothing is ever deleted."
          checked={isPruning}
          change={setPruning}
        />
        <SecretFields secrets={wanted.filter(([name]) => !there.has(name))} typed={typed} change={setTyped} />
        {there.size > 0 && (
          <Folded title="Secrets that there are" hint="Those left empty stay as they are.">
            <SecretFields
              secrets={wanted.filter(([name]) => there.has(name))}
              typed={typed}
              change={setTyped}
            />
          </Folded>
        )}
        {failure && <Faults failure={failure} />}
        <button type="submit" class="button" disabled={settings === null}>
          Show the difference
        </button>
        {difference && (
          <Changes report={difference.report}>
            <div class="form-actions">
              <button type="button" class="button button-primary" onClick={() => setApplying(true)}>
                Apply …
              </button>
            </div>
          </Changes>
        )}
      </form>
      {isApplying && difference && (
        <ApplyDialog
          difference={difference}
          isPruning={isPruning}
          close={() => setApplying(false)}
          done={() => {
            setTyped({})
            reload()
          }}
        />
      )}
    </section>
  )
}

function parsedFile(text: string): object | null {
  try {
    const file = JSON.parse(text) as unknown
    return typeof file === 'object' && file !== null && !Array.isArray(file) ? file : null
  } catch {
    return null
  }
}

const reference = /^\$\{([A-Za-z_]\w{0,127})\}$/

/** PEM has lines, which a field for a password loses. */
const loginsInPem = ['clientCert', 'clientKey', 'ca']

/** The variables that a file refers to, each with whether it is in PEM form. */
function secretsIn(file: { destinations?: unknown }): Map<string, boolean> {
  const found = new Map<string, boolean>()
  const look = (value: unknown, field: string) => {
    const name = typeof value === 'string' ? reference.exec(value)?.[1] : undefined
    if (name !== undefined) found.set(name, found.get(name) || loginsInPem.includes(field))
    else if (typeof value === 'object' && value !== null)
      for (const [key, each] of Object.entries(value)) look(each, key)
  }
  look(file.destinations, '')
  return found
}

function SecretFields({
  secrets,
  typed,
  change,
}: {
  secrets: (readonly [name: string, isPem: boolean])[]
  typed: TypedSecrets
  change: (typed: TypedSecrets) => void
}) {
  return secrets.map(([name, isPem]) => {
    const given = {
      label: name,
      value: typed[name] ?? '',
      change: (value: string) => change({ ...typed, [name]: value }),
    }
    return isPem ? (
      <TextArea key={name} {...given} />
    ) : (
      <TextField key={name} {...given} type="password" autocomplete="new-password" />
    )
  })
}

function Faults({ failure }: { failure: ApiFailure }) {
  return (
    <>
      <Failure failure={failure} />
      <ul>
        {failure.fields.map(({ field, message }) => (
          <li key={field + message} class="fault">
            <code>{field.replace(/^settings\./, '')}</code>: {message}
          </li>
        ))}
      </ul>
    </>
  )
}

function Changes({ report, children }: { report: ApplyAnswer; children: ComponentChildren }) {
  const { changed, keptSecrets, keptComputations, keptPlans } = report
  if (changed.length === 0) return <p role="status">Nothing would change.</p>
  const kept = [...keptComputations, ...keptPlans.map((id) => ({ kind: 'plan', id }))]
  return (
    <div class="section">
      <p role="status">{countOf(changed.length, 'thing')} would change.</p>
      <ul class="difference">
        {changed.map(({ kind, id, created, changes }) => (
          <li key={`${kind}/${id}`}>
            {created ? 'Create' : 'Change'} {kind} <span class="id">{id}</span>
            <ul>
              {changes
                .filter(({ to }) => !created || (to !== null && to !== false))
                .map(({ field, from, to }) => (
                  <li key={field}>
                    {field}: <span class="id">{created ? shown(to) : `${shown(from)} → ${shown(to)}`}</span>
                  </li>
                ))}
            </ul>
          </li>
        ))}
      </ul>
      {keptSecrets.length > 0 && (
        <p class="hint">Secrets stay as they are unless you give them: {keptSecrets.join(', ')}</p>
      )}
      {kept.length > 0 && (
        <p class="hint">
          Not in the file, and stay: {kept.map(({ kind, id }) => `${kind} ${id}`).join(', ')}
        </p>
      )}
      {children}
    </div>
  )
}

const maxShown = 200

function shown(value: unknown): string {
  if (value === null || value === undefined) return 'none'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > maxShown ? `${text.slice(0, maxShown)}…` : text
}

/** Applies what was shown: nothing, where somebody else was faster. */
function ApplyDialog({
  difference: { settings, secrets, report },
  isPruning,
  close,
  done,
}: {
  difference: Difference
  isPruning: boolean
  close: () => void
  done: () => void
}) {
  const { changed, version } = report
  const apply = async () => {
    await request('POST /settings/apply', {
      body: { settings, secrets, prune: isPruning, expectedVersion: version },
    })
    say(`${countOf(changed.length, 'thing')} changed`)
    done()
  }
  return (
    <ActionDialog
      title={`Apply ${countOf(changed.length, 'change')}?`}
      action="Apply"
      act={apply}
      close={close}
    >
      <p>All of it counts, or nothing.</p>
    </ActionDialog>
  )
}
