import { useState } from 'preact/hooks'
import { useLongRequest, request } from '../../api/request.ts'
import type { DryRunAnswer } from '../../api/routes.ts'
import { ActionDialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/fields.tsx'
import { countOf, countText } from '../../components/figures.ts'
import { Failure, Loading, Note, Progress, say } from '../../components/notices.tsx'

/** What is replayed: as the body of the API's request has it. */
export interface ReplayChoice {
  deadLetters: { ids?: string[]; kinds?: object[] }
  since?: string
  until?: string
}

interface Looked {
  looked: number
  total: number
}

const usualRate = '50'
const maxWhys = 5

/** First what a replay would send, then at which rate; then it is a job that consoles run. */
export function ReplayDialog({
  choice,
  what,
  started,
  close,
}: {
  choice: ReplayChoice
  /** For people: `412 × 503 from crm`. */
  what: string
  started: () => void
  close: () => void
}) {
  const dry = useLongRequest<'POST /replays/dry-run', Looked>('POST /replays/dry-run', { body: choice })
  const [rateText, setRate] = useState(usualRate)
  const rate = rateOf(rateText)
  const total = dry.data ? sentOf(dry.data) : 0
  const act = async () => {
    const { data } = await request('POST /replays', {
      body: { ...choice, ...(typeof rate === 'number' && { rate }) },
    })
    say(`Replay ${data.id} of ${what} is running`)
    started()
  }
  return (
    <ActionDialog
      title={`Replay ${what}?`}
      action={total > 0 ? `Send ${countText(total)} again` : 'Send again'}
      isPossible={total > 0 && rate !== undefined}
      act={act}
      close={close}
    >
      {dry.failure ? (
        <Failure failure={dry.failure} retry={dry.reload} />
      ) : dry.data === null ? (
        <DryRunProgress progress={dry.progress} />
      ) : (
        <>
          <DryRunResult report={dry.data} />
          {total > 0 && (
            <>
              <TextField
                label="At most a second"
                value={rateText}
                change={setRate}
                hint="Empty: as fast as possible. The destination’s own limits hold all the same."
                fault={rate === undefined ? 'Give a number from 0.001 to 999999, or nothing.' : undefined}
              />
              <p>
                A console sends them, whether this page is open or not. Receivers can tell what they took
                before by its <code>Idempotency-Key</code>.
              </p>
            </>
          )}
        </>
      )}
    </ActionDialog>
  )
}

const sentOf = ({ counts: { failed, raw } }: DryRunAnswer): number => failed + raw

function DryRunProgress({ progress }: { progress: Looked | null }) {
  if (progress === null) return <Loading what="what would be sent" />
  return (
    <Progress label="Looked at" done={progress.looked} total={Math.max(progress.looked, progress.total)} />
  )
}

function DryRunResult({ report }: { report: DryRunAnswer }) {
  const { refused, repeated, erased, results } = report
  const whys = new Map<string, number>()
  for (const { why } of results) if (why !== null) whys.set(why, (whys.get(why) ?? 0) + 1)
  return (
    <>
      <dl class="pairs dry-run">
        <dt>Would be sent again</dt>
        <dd class="numbers">{countText(sentOf(report))}</dd>
        {repeated > 0 && (
          <>
            <dt>Left out</dt>
            <dd>{countOf(repeated, 'further failure')} of the same deliveries</dd>
          </>
        )}
        {erased > 0 && (
          <>
            <dt>Left out</dt>
            <dd>{countText(erased)} of deleted users</dd>
          </>
        )}
        {refused > 0 && (
          <>
            <dt>Cannot be replayed</dt>
            <dd>
              {countText(refused)}
              <ul>
                {[...whys].slice(0, maxWhys).map(([why, count]) => (
                  <li key={why} class="foreign faint">
                    {countText(count)} × {why}
                  </li>
                ))}
              </ul>
            </dd>
          </>
        )}
      </dl>
      {sentOf(report) === 0 && <Note>Nothing of it can be sent again.</Note>}
    </>
  )
}

/** Null for as fast as possible, undefined for what is no rate. */
function rateOf(text: string): number | null | undefined {
  if (text.trim() === '') return null
  const rate = Number(text)
  return rate >= 0.001 && rate <= 999_999 ? rate : undefined
}
