import { useState } from 'preact/hooks'
import { go } from '../../app/address.ts'
import { PageTitle } from '../../app/page-title.tsx'
import { may } from '../../app/session.ts'
import { useLive } from '../../api/live.ts'
import { requestWithProgress } from '../../api/request.ts'
import type { CountedComputationAnswer, SyncProgressLine } from '../../api/routes.ts'
import { CopyAsCurl } from '../../components/copy.tsx'
import { ActionDialog } from '../../components/dialog.tsx'
import { countOf, countText } from '../../components/figures.ts'
import { Checkbox } from '../../components/forms/field.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { NoValue, Note } from '../../components/notices.tsx'
import { Progress } from '../../components/progress.tsx'
import { Ago, At } from '../../components/time.tsx'
import { say } from '../../components/toast.tsx'
import type { PageProps } from '../page-props.ts'
import { SyncBadge } from './computations.tsx'
import { audiences, traits, type Kind } from './kinds.ts'
import { ListDialog } from './list-dialog.tsx'

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
      >
        <CopyAsCurl route={kind.show} asked={{ id }} />
        {data && may('admin') && (
          <>
            <button type="button" class="button" onClick={() => setAsked('delete')}>
              Delete
            </button>
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
  const remove = async () => {
    const { notified } = await requestWithProgress(kind.remove, { id, query: { notify } }, setProgress)
    say(`Deleted ${id}${notify ? `; ${countOf(notified, 'call')} sent` : ''}`)
    go('/audiences')
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
