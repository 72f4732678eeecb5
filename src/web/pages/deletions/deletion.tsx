import { useState } from 'preact/hooks'
import { pathTo } from '../../../console/page-paths.ts'
import { useLive } from '../../api/live.ts'
import { requestWithProgress } from '../../api/request.ts'
import type { DeletionProgressLine, DeletionStatusAnswer } from '../../api/routes.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { ActionDialog } from '../../components/dialog.tsx'
import { countOf, countText } from '../../components/figures.ts'
import { Empty, Note, Progress, say } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { CopyAsCurl } from '../../components/text.tsx'
import { Ago, At } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'
import type { PageProps } from '../page-props.ts'
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
      >
        <CopyAsCurl route="GET /deletions/{id}" asked={{ id }} />
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

function Status({ status: { id, requestedAt, progress } }: { status: DeletionStatusAnswer }) {
  const rows = progress.flatMap(({ sourceId, requested, destinations }) =>
    destinations.map((each): Line => ({ ...each, sourceId, requested })),
  )
  const unnotified = progress.filter(({ requested }) => requested === 0).map(({ sourceId }) => sourceId)
  const hasUnknown = rows.some(({ unknown }) => unknown > 0)
  return (
    <>
      <dl class="card pairs pairs-card">
        <dt>Request</dt>
        <dd class="id">{id}</dd>
        <dt>Requested</dt>
        <dd>
          <At at={requestedAt} />, <Ago at={requestedAt} />
        </dd>
      </dl>
      <section class="section">
        <div class="section-head">
          <h2>Progress per destination</h2>
          {hasUnknown && <p>What became of delete calls of more than 9 days ago is not known any more.</p>}
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
    </>
  )
}

const done = ({ delivered, failed, skipped, unknown }: Line) => delivered + failed + skipped + unknown

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
  { head: 'Source', hides: 'narrow', cell: ({ sourceId }) => <span class="id">{sourceId}</span> },
  {
    head: 'Done',
    cell: (line) => (
      <progress
        class="meter"
        aria-label={`${line.destinationId}: ${done(line)} of ${line.requested} done`}
        max={Math.max(1, line.requested)}
        value={done(line)}
      />
    ),
  },
  { head: 'Requested', isNumber: true, hides: 'medium', cell: ({ requested }) => countText(requested) },
  { head: 'Delivered', isNumber: true, cell: ({ delivered }) => countText(delivered) },
  { head: 'Waiting', isNumber: true, hides: 'narrow', cell: ({ waiting }) => countText(waiting) },
  {
    head: 'Failed',
    isNumber: true,
    cell: ({ failed }) => <span class={failed > 0 ? 'is-bad' : ''}>{countText(failed)}</span>,
  },
  { head: 'Skipped', isNumber: true, hides: 'narrow', cell: ({ skipped }) => countText(skipped) },
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
