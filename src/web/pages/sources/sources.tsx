import { useState } from 'preact/hooks'
import { pathTo } from '../../../console/page-paths.ts'
import { useLive } from '../../api/live.ts'
import { request } from '../../api/request.ts'
import type { SourceAnswer } from '../../api/routes.ts'
import { query } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { ActionDialog, Dialog } from '../../components/dialog.tsx'
import { TextField, IdField } from '../../components/fields.tsx'
import { compactText } from '../../components/figures.ts'
import { NotKnown, NoValue, say, Failure } from '../../components/notices.tsx'
import { useSettled } from '../../components/settled.ts'
import { FilterByName, PagedTable, type Column } from '../../components/table.tsx'
import { OptionControl } from '../../components/option-control.tsx'
import { editedOption, optionFields, optionValue, type EditedOption } from '../../components/options.ts'
import { AndMore, SourceBadge, WriteKey } from './parts.tsx'

type Asked = { what: 'new' } | { what: 'change' | 'enable' | 'disable'; source: SourceAnswer }

/** Where calls come from: their write keys, quotas and the calls of the last day. */
export function Sources() {
  const [asked, setAsked] = useState<Asked | null>(null)
  const [version, setVersion] = useState(0)
  const text = useSettled(query.value.get('q') ?? '')
  const close = () => setAsked(null)
  const done = (text: string) => {
    say(text)
    setVersion((before) => before + 1)
  }
  return (
    <>
      <PageTitle title="Sources" curl={{ route: 'GET /sources' }}>
        {may('admin') && (
          <button type="button" class="button button-primary" onClick={() => setAsked({ what: 'new' })}>
            New source
          </button>
        )}
      </PageTitle>
      <div class="filters">
        <FilterByName />
      </div>
      <PagedTable
        route="GET /sources"
        asked={{ query: { lastDay: true, q: text } }}
        what="sources"
        columns={columnsOf(setAsked)}
        keyOf={({ id }) => id}
        version={version}
        empty={{
          title: text === '' ? 'There are no sources yet.' : `No source has “${text}” in its name or id.`,
          text:
            text !== ''
              ? ''
              : may('admin')
                ? 'Make one: its write key is what applications send their calls with.'
                : 'Somebody with the role admin can make one.',
        }}
      />
      {asked?.what === 'new' && <NewSource close={close} done={done} />}
      {asked?.what === 'change' && <ChangeSource id={asked.source.id} close={close} done={done} />}
      {(asked?.what === 'enable' || asked?.what === 'disable') && (
        <TurnSource turn={asked.what} source={asked.source} close={close} done={done} />
      )}
    </>
  )
}

function TurnSource({
  turn,
  source: { id, name },
  close,
  done,
}: {
  turn: 'enable' | 'disable'
  source: SourceAnswer
  close: () => void
  done: (text: string) => void
}) {
  const verb = turn === 'enable' ? 'Enable' : 'Disable'
  return (
    <ActionDialog
      title={`${verb} source “${name}”?`}
      action={`${verb} ${id}`}
      isDestructive={turn === 'disable'}
      close={close}
      act={async () => {
        await request(`POST /sources/{id}/${turn}`, { id })
        done(`Source ${id} is ${turn}d`)
      }}
    >
      <p>
        {turn === 'enable'
          ? 'Collectors take its calls again.'
          : 'Collectors refuse its calls, and calls that wait are skipped. Senders do not try refused calls again.'}
      </p>
    </ActionDialog>
  )
}

function columnsOf(ask: (asked: Asked) => void): Column<SourceAnswer>[] {
  const figure = ({ lastDay }: SourceAnswer, field: 'accepted' | 'refused' | 'flagged') => {
    if (!lastDay) return <NotKnown why="The statistics are not read yet" />
    const count = lastDay[field]
    return <span class={field === 'refused' && count > 0 ? 'is-bad' : ''}>{compactText(count)}</span>
  }
  return [
    {
      head: 'Source',
      isName: true,
      cell: ({ id, name }) => (
        <a class="thing" href={pathTo('source', { id })}>
          <span class="foreign">{name}</span>
          {name !== id && <span class="id faint">{id}</span>}
        </a>
      ),
    },
    { head: 'State', cell: (source) => <SourceBadge source={source} /> },
    { head: 'Accepted, 24 h', isNumber: true, moves: 'narrow', cell: (source) => figure(source, 'accepted') },
    { head: 'Refused, 24 h', isNumber: true, moves: 'narrow', cell: (source) => figure(source, 'refused') },
    { head: 'Flagged, 24 h', isNumber: true, moves: 'medium', cell: (source) => figure(source, 'flagged') },
    {
      head: 'Quota',
      isNumber: true,
      moves: 'medium',
      cell: ({ maxRate }) => maxRate ?? <NoValue why="No quota" />,
    },
    {
      head: 'Write key',
      moves: 'medium',
      cell: ({ id, writeKey }) =>
        writeKey === null ? (
          <NoValue why="Built in: nobody sends calls to it" />
        ) : (
          <WriteKey of={id} text={writeKey} />
        ),
    },
    { head: 'Goes to', moves: 'medium', cell: (source) => <GoesTo source={source} /> },
    ...(may('admin')
      ? [
          {
            head: 'Actions',
            cell: (source: SourceAnswer) =>
              source.builtIn ? null : (
                <div class="row-actions">
                  <button
                    type="button"
                    class="button button-small"
                    aria-label={`Change ${source.id}`}
                    onClick={() => ask({ what: 'change', source })}
                  >
                    Change
                  </button>
                  <button
                    type="button"
                    class="button button-small"
                    aria-label={`${source.enabled ? 'Disable' : 'Enable'} ${source.id}`}
                    onClick={() => ask({ what: source.enabled ? 'disable' : 'enable', source })}
                  >
                    {source.enabled ? 'Disable' : 'Enable'}
                  </button>
                </div>
              ),
          },
        ]
      : []),
  ]
}

const maxNamed = 3

function GoesTo({ source: { destinationIds: ids, destinationCount } }: { source: SourceAnswer }) {
  if (ids.length === 0) return <NoValue why="No destination: its calls go nowhere" />
  return (
    <span class="words">
      {ids.slice(0, maxNamed).map((id) => (
        <a key={id} class="id" href={pathTo('destination', { id })}>
          {id}
        </a>
      ))}
      <AndMore shown={Math.min(ids.length, maxNamed)} count={destinationCount} />
    </span>
  )
}

interface FormProps {
  close: () => void
  done: (text: string) => void
}

type Options = Record<string, EditedOption>

/** The options as a form holds them; of a new source their defaults. */
const optionsOf = (source: SourceAnswer | null): Options =>
  Object.fromEntries(
    optionFields.source.map((field) => [
      field.name,
      editedOption(field, source ? source[field.name] : field.fallback),
    ]),
  )

/** As the API takes them: those that differ from what there is. */
const changedOptions = (source: SourceAnswer | null, options: Options): Record<string, unknown> =>
  Object.fromEntries(
    optionFields.source
      .map((field) => [field, optionValue(field, options[field.name]!)] as const)
      .filter(([{ name, fallback }, value]) => value !== (source ? source[name] : fallback))
      .map(([{ name }, value]) => [name, value]),
  )

const OptionControls = ({ options, change }: { options: Options; change: (to: Options) => void }) =>
  optionFields.source.map((field) => (
    <OptionControl
      key={field.name}
      field={field}
      value={options[field.name]!}
      change={(to) => change({ ...options, [field.name]: to })}
    />
  ))

export function NewSource({ close, done }: FormProps) {
  const [id, setId] = useState('')
  const [name, setName] = useState('')
  const [options, setOptions] = useState(() => optionsOf(null))
  const create = async () => {
    await request('POST /sources', { body: { id, name: name || id, ...changedOptions(null, options) } })
    done(`Source ${id} is there; its write key is in the list`)
  }
  return (
    <ActionDialog title="New source" action="Create source" close={close} act={create}>
      <IdField value={id} change={setId} />
      <TextField label="Name" value={name} change={setName} hint="For people. Empty: the id." />
      <OptionControls options={options} change={setOptions} />
    </ActionDialog>
  )
}

/** Reads the source first, so that what somebody else changes meanwhile is not overwritten. */
export function ChangeSource({ id, ...rest }: FormProps & { id: string }) {
  const live = useLive('GET /sources/{id}', { id }, 0)
  if (live.data === null)
    return live.failure ? (
      <Dialog title={`Change ${id}`} close={rest.close}>
        <Failure failure={live.failure} />
      </Dialog>
    ) : null
  return <ChangeForm source={live.data} tag={live.tag} {...rest} />
}

function ChangeForm({ source, tag, close, done }: FormProps & { source: SourceAnswer; tag: string | null }) {
  const { id } = source
  const [name, setName] = useState(source.name)
  const [options, setOptions] = useState(() => optionsOf(source))
  const [writeKey, setWriteKey] = useState('')
  const changes = {
    ...(name !== source.name && { name }),
    ...changedOptions(source, options),
    ...(writeKey !== '' && { writeKey }),
  }
  const save = async () => {
    const headers: Record<string, string> = tag === null ? {} : { 'If-Match': tag }
    if (Object.keys(changes).length > 0) await request('PATCH /sources/{id}', { id, body: changes, headers })
    done(`Source ${id} is changed`)
  }
  return (
    <ActionDialog title={`Change source “${source.name}”`} action="Save" close={close} act={save}>
      <TextField label="Name" value={name} change={setName} autofocus />
      <OptionControls options={options} change={setOptions} />
      <TextField
        label="New write key"
        value={writeKey}
        change={setWriteKey}
        hint="Empty: it stays. A new one stops the old one at once: change it in the applications too."
      />
    </ActionDialog>
  )
}
