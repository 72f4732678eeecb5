import { useState } from 'preact/hooks'
import { pathTo } from '../../../console/page-paths.ts'
import { useLive } from '../../api/live.ts'
import { request, requestWithProgress } from '../../api/request.ts'
import type { DeletionProgressLine, DeletionStatusAnswer } from '../../api/routes.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { ActionDialog } from '../../components/dialog.tsx'
import { countOf, countText } from '../../components/figures.ts'
import { Empty, NotKnown, Note, Progress, say } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { Ago, At } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'
import type { PageProps } from '../page-props.ts'
import { failedDeletes } from './failed-deletes.ts'
import { DeletionBadge } from './parts.tsx'

type SourceLine = DeletionStatusAnswer['progress'][number]
type Line = SourceLine['destinations'][number] & { sourceId: string; requested: number }

/** One request: what became of its delete calls, for each destination. */
export function Deletion({ params }: PageProps) {
  const id = params.id!
  const live = useLive('GET /deletions/{id}', { id }, 5_000)
  const [isResuming, setResuming] = useState(false)
  const { data } = live
  return (
    <>
      <PageTitle
        title={data ? `Deletion of ${countOf(data.users, 'user')}` : 'Deletion'}
        above={<a href="/deletions">Deletions</a>}
        beside={data && <DeletionBadge state={data.state} />}
        curl={{ route: 'GET /deletions/{id}', asked: { id } }}
      >
        {data && <Receipt status={data} />}
        {data?.state === 'interrupted' && may('admin') && (
          <button type="button" class="button button-primary" onClick={() => setResuming(true)}>
            Resume
          </button>
        )}
      </PageTitle>
      <Loaded live={live} what={`deletion ${id}`}>
        {(status) => (
          <>
            {status.state === 'interrupted' && (
              <Note tone="warn">
                Not all delete calls are written. It is being written now, or it was interrupted; then resume
                it.
              </Note>
            )}
            {status.state === 'cut_off' && (
              <Note tone="warn">
                It ended before all of its users were erased, or it is being written now. If it stays so, give
                all of its users again.
              </Note>
            )}
            <Status status={status} />
            {isResuming && <ResumeDialog id={id} close={() => setResuming(false)} done={live.reload} />}
          </>
        )}
      </Loaded>
    </>
  )
}

/** What is known of it now, to be kept: without the users, whose ids are to be forgotten. */
const Receipt = ({ status }: { status: DeletionStatusAnswer }) => (
  <a
    class="button"
    href={`data:application/json;charset=utf-8,${encodeURIComponent(JSON.stringify({ ...status, savedAt: new Date() }, null, 2))}`}
    download={`deletion-${status.id}.json`}
  >
    Save a receipt
  </a>
)

function Status({ status }: { status: DeletionStatusAnswer }) {
  const { id, requestedAt, actor, progress } = status
  const rows = progress
    .flatMap(({ sourceId, requested, destinations }) =>
      destinations.map((each): Line => ({ ...each, sourceId, requested })),
    )
    .toSorted((a, b) => b.failed - a.failed || b.waiting - a.waiting)
  const unnotified = progress.filter(({ requested }) => requested === 0).map(({ sourceId }) => sourceId)
  const hasUnknown = rows.some(({ unknown }) => unknown > 0)
  const failed = [...new Set(rows.flatMap((row) => (row.failed > 0 ? [row.destinationId] : [])))]
  const [again, setAgain] = useState<readonly string[] | null>(null)
  return (
    <>
      <dl class="card pairs pairs-card">
        <dt>Request</dt>
        <dd class="id">{id}</dd>
        <dt>Requested</dt>
        <dd>
          <At at={requestedAt} />, <Ago at={requestedAt} />
        </dd>
        <dt>By</dt>
        <dd>
          {actor === null ? (
            <NotKnown why="Versions before did not note it" />
          ) : (
            <span class="foreign">{actor}</span>
          )}
        </dd>
        <dt>Told</dt>
        <dd>
          <Told rows={rows} />
        </dd>
      </dl>
      <section class="section">
        <div class="section-head">
          <h2>Progress per destination</h2>
          {hasUnknown && <p>What became of delete calls of more than 9 days ago is not known any more.</p>}
          {failed.length > 0 && may('operator') && (
            <button type="button" class="button button-primary" onClick={() => setAgain(failed)}>
              Send again what failed
            </button>
          )}
        </div>
        {rows.length > 0 ? (
          <Table
            label="Progress per destination"
            columns={hasUnknown ? [...columns, unknownColumn] : columns}
            rows={rows}
            keyOf={({ sourceId, destinationId }) => `${sourceId}/${destinationId}`}
          />
        ) : (
          <Empty title="No destination had to be notified.">
            <p>The users are erased from what waits, from dead letters and from replays.</p>
          </Empty>
        )}
        {rows.length > 0 && unnotified.length > 0 && (
          <p class="hint">Sources without a destination to notify: {unnotified.join(', ')}</p>
        )}
      </section>
      {again && <AgainDialog id={id} since={requestedAt} destinations={again} close={() => setAgain(null)} />}
    </>
  )
}

/** What is over, however it ended: a delete call that failed told nobody anything. */
function Told({ rows }: { rows: readonly Line[] }) {
  const sum = (of: (line: Line) => number) => rows.reduce((total, line) => total + of(line), 0)
  const [asked, failed] = [sum(({ requested }) => requested), sum((line) => line.failed)]
  const others = [
    [sum(({ waiting }) => waiting), 'wait'],
    [sum(({ skipped }) => skipped), 'skipped'],
    [sum(({ unknown }) => unknown), 'not known any more'],
  ] as const
  if (asked === 0) return <>nobody: no destination had to be</>
  return (
    <>
      {countText(sum(({ delivered }) => delivered))} of {countText(asked)}
      {failed > 0 && <span class="is-bad">{` · ${countText(failed)} failed`}</span>}
      {others.map(([count, word]) => count > 0 && ` · ${countText(count)} ${word}`)}
    </>
  )
}

/** A page of the API. */
const pageLimit = 200

function AgainDialog({
  id,
  since,
  destinations,
  close,
}: {
  id: string
  since: string
  destinations: readonly string[]
  close: () => void
}) {
  const act = async () => {
    const query = { destination: destinations, since, replays: true, limit: pageLimit }
    const parts = await failedDeletes(
      id,
      async (cursor) => (await request('GET /dead-letters', { query: { ...query, cursor } })).data,
    )
    if (parts.length === 0)
      return say('No dead letter of it is left: they were sent again, or are gone', 'bad')
    for (const ids of parts) await request('POST /replays', { body: { deadLetters: { ids } } })
    say(`${countOf(parts.flat().length, 'delete call')} sent again`)
  }
  return (
    <ActionDialog
      title="Send the failed delete calls again?"
      action="Send them again"
      act={act}
      close={close}
    >
      <p>
        To {destinations.length > 3 ? countOf(destinations.length, 'destination') : destinations.join(', ')},
        each under the delivery id that it had.
      </p>
    </ActionDialog>
  )
}

const unknownColumn: Column<Line> = {
  head: 'Not known',
  isNumber: true,
  cell: ({ unknown }) => countText(unknown),
}

const columns: Column<Line>[] = [
  {
    head: 'Destination',
    isName: true,
    cell: ({ destinationId: id }) => (
      <a class="id" href={pathTo('destination', { id })}>
        {id}
      </a>
    ),
  },
  { head: 'Source', moves: 'narrow', cell: ({ sourceId }) => <span class="id">{sourceId}</span> },
  {
    head: 'Told',
    cell: (line) => (
      <progress
        class="meter"
        aria-label={`${line.destinationId}: ${line.delivered} of ${line.requested} told`}
        max={Math.max(1, line.requested)}
        value={line.delivered}
      />
    ),
  },
  { head: 'Requested', isNumber: true, moves: 'medium', cell: ({ requested }) => countText(requested) },
  { head: 'Delivered', isNumber: true, moves: 'narrow', cell: ({ delivered }) => countText(delivered) },
  { head: 'Waiting', isNumber: true, moves: 'narrow', cell: ({ waiting }) => countText(waiting) },
  {
    head: 'Failed',
    isNumber: true,
    cell: ({ failed }) => <span class={failed > 0 ? 'is-bad' : ''}>{countText(failed)}</span>,
  },
  { head: 'Skipped', isNumber: true, moves: 'narrow', cell: ({ skipped }) => countText(skipped) },
]

function ResumeDialog({ id, close, done }: { id: string; close: () => void; done: () => void }) {
  const [progress, setProgress] = useState<DeletionProgressLine | null>(null)
  const resume = async () => {
    const { deleteCalls, missing } = await requestWithProgress(
      'POST /deletions/{id}/resume',
      { id },
      setProgress,
    )
    if (missing > 0) say(`${countOf(missing, 'user')} were never erased: give all of them again`, 'bad')
    else say(`${countOf(deleteCalls, 'delete call')} written`)
    done()
  }
  return (
    <ActionDialog title={`Resume deletion ${id}?`} action="Resume" act={resume} close={close}>
      <p>Writes the delete calls that are missing. Those that were written before keep their messageId.</p>
      {progress && <Progress label="Written" done={progress.done} total={progress.total} />}
    </ActionDialog>
  )
}
