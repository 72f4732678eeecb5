import { useState } from 'preact/hooks'
import { useLive } from '../../api/live.ts'
import { requestWithProgress } from '../../api/request.ts'
import type { SyncProgressLine, CountedComputationAnswer } from '../../api/routes.ts'
import { go } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { ActionDialog } from '../../components/dialog.tsx'
import { Checkbox, TextArea } from '../../components/fields.tsx'
import { countText, countOf } from '../../components/figures.ts'
import { Progress, say, NoValue, Note } from '../../components/notices.tsx'
import { Ago, At } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'
import type { PageProps } from '../page-props.ts'
import { SyncBadge } from './computations.tsx'
import { type Kind, linesOfFile, linesOfIds, audiences, traits } from './kinds.ts'

interface ListDialogProps {
  kind: Kind
  id: string
  mode: 'sync' | 'change'
  close: () => void
  done: () => void
}

/** Gives the whole list, or changes; from a file or as text. */
export function ListDialog({ kind, id, mode, close, done }: ListDialogProps) {
  const [text, setText] = useState('')
  const [removed, setRemoved] = useState('')
  const [file, setFile] = useState<File | null>(null)
  const [allowEmpty, setAllowEmpty] = useState(false)
  const [progress, setProgress] = useState<SyncProgressLine | null>(null)
  const isAudience = kind.page === 'audience'
  const isChange = mode === 'change'

  const send = async () => {
    const added = file === null ? linesOfIds(text) : await linesOfFile(file)
    const lines = isAudience && isChange ? new Blob([added, linesOfIds(removed, false)]) : added
    const asked = { id, lines, query: isChange ? {} : { allowEmpty } }
    const report = await requestWithProgress(kind[mode], asked, setProgress)
    const { given, entered, left } = report
    say(`${id}: ${countText(given)} given, ${countText(entered)} entered, ${countText(left)} left`)
    done()
  }
  const title = isChange ? `Change some users of ${id}` : `The whole list of ${id}`
  return (
    <ActionDialog title={title} action={isChange ? 'Send changes' : 'Send the list'} close={close} act={send}>
      <p>
        {isChange
          ? 'Users who are not named stay as they are.'
          : 'Users who are not in the list leave. Destinations are notified of what changed since the last time.'}
      </p>
      <TextArea
        label={isAudience ? (isChange ? 'Users who enter' : 'Members') : 'Values'}
        hint={
          isAudience
            ? 'A user id a line, or JSON lines.'
            : 'A JSON object a line: {"userId":"u-1","value":3}. The value null takes it away.'
        }
        rows={6}
        value={text}
        change={setText}
      />
      <div class="field">
        <label for="list-file">Or a file of such lines</label>
        <input
          id="list-file"
          type="file"
          accept=".txt,.csv,.json,.jsonl,.ndjson"
          onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)}
        />
      </div>
      {isAudience && isChange && (
        <TextArea
          label="Users who leave"
          hint="A user id a line."
          rows={3}
          value={removed}
          change={setRemoved}
        />
      )}
      {!isChange && (
        <Checkbox
          label="Take an empty list"
          hint="Everybody leaves. Unless checked, an empty list is refused."
          checked={allowEmpty}
          change={setAllowEmpty}
        />
      )}
      {progress && (
        <Progress
          label={progress.phase === 'finishing' ? 'Finishing the sync before' : 'Sent'}
          done={progress.done}
          total={progress.total}
        />
      )}
    </ActionDialog>
  )
}

export const Audience = ({ params }: PageProps) => <Computation kind={audiences} id={params.id!} />
export const Trait = ({ params }: PageProps) => <Computation kind={traits} id={params.id!} />

type Asked = 'sync' | 'change' | 'delete'

function Computation({ kind, id }: { kind: Kind; id: string }) {
  const live = useLive(kind.show, { id }, 5_000)
  const [asked, setAsked] = useState<Asked | null>(null)
  const close = () => setAsked(null)
  const { data } = live
  return (
    <>
      <PageTitle
        title={data?.name ?? id}
        above={<a href="/audiences">Audiences and traits</a>}
        beside={data && <SyncBadge of={data} />}
        curl={{ route: kind.show, asked: { id } }}
        menu={
          data &&
          may('admin') && (
            <button type="button" class="button button-quiet" onClick={() => setAsked('delete')}>
              Delete
            </button>
          )
        }
      >
        {data && may('admin') && (
          <>
            <button type="button" class="button" onClick={() => setAsked('change')}>
              Change some
            </button>
            <button type="button" class="button button-primary" onClick={() => setAsked('sync')}>
              Give the whole list
            </button>
          </>
        )}
      </PageTitle>
      <Loaded live={live} what={`${kind.one} ${id}`}>
        {(found) => (
          <>
            <Facts kind={kind} found={found} />
            {(asked === 'sync' || asked === 'change') && (
              <ListDialog kind={kind} id={id} mode={asked} close={close} done={live.reload} />
            )}
            {asked === 'delete' && <DeleteDialog kind={kind} found={found} close={close} />}
          </>
        )}
      </Loaded>
    </>
  )
}

function Facts({ kind, found }: { kind: Kind; found: CountedComputationAnswer }) {
  const { id, key, sourceId, count, openSync, lastSync } = found
  return (
    <>
      {openSync && (
        <Note tone="warn">
          A sync began <Ago at={openSync.startedAt} /> and is not finished. It is running, or it was
          interrupted; then the next one finishes it first, and each change is still sent.
        </Note>
      )}
      <dl class="card pairs pairs-card">
        <dt>{kind.counted}</dt>
        <dd class="numbers">{countText(count)}</dd>
        <dt>Id</dt>
        <dd class="id">{id}</dd>
        <dt>Property</dt>
        <dd class="id">{key}</dd>
        <dt>Source</dt>
        <dd class="id">{sourceId}</dd>
        <dt>Last sync</dt>
        <dd>
          {lastSync === null ? (
            <NoValue why="There was no sync yet" />
          ) : (
            <>
              <At at={lastSync.finishedAt} />, {lastSync.mode === 'full' ? 'the whole list' : 'a change'}:{' '}
              {countText(lastSync.entered)} entered, {countText(lastSync.left)} left
            </>
          )}
        </dd>
      </dl>
    </>
  )
}

function DeleteDialog({
  kind,
  found: { id, name, count },
  close,
}: {
  kind: Kind
  found: CountedComputationAnswer
  close: () => void
}) {
  const [notify, setNotify] = useState(false)
  const [progress, setProgress] = useState<SyncProgressLine | null>(null)
  const remove = async (isOpen: () => boolean) => {
    const { notified } = await requestWithProgress(kind.remove, { id, query: { notify } }, setProgress)
    say(`Deleted ${id}${notify ? `; ${countOf(notified, 'call')} sent` : ''}`)
    if (isOpen()) go('/audiences')
  }
  return (
    <ActionDialog
      title={`Delete “${name}”?`}
      action={`Delete ${id}`}
      isDestructive
      act={remove}
      close={close}
    >
      <p>{`It has ${countOf(count, 'user')}. Its id can never be used again.`}</p>
      <Checkbox
        label="Notify destinations first"
        hint="Each user in it is sent as having left."
        checked={notify}
        change={setNotify}
      />
      {progress && <Progress label="Sent" done={progress.done} total={progress.total} />}
    </ActionDialog>
  )
}
