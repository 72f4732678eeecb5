import { useState, useEffect } from 'preact/hooks'
import { useLive } from '../../api/live.ts'
import { useLongRequest, request } from '../../api/request.ts'
import type { DestinationAnswer, DryRunAnswer, MessageAnswer, ReplayStatusAnswer } from '../../api/routes.ts'
import { setQuery } from '../../app/address.ts'
import { ActionDialog, Dialog } from '../../components/dialog.tsx'
import { Select } from '../../components/fields.tsx'
import { Lazy } from '../../components/lazy.tsx'
import { Failure, Loading, Note } from '../../components/notices.tsx'
import { Loaded } from '../../components/views.tsx'

const replayRow = () => import('../../components/replays.tsx').then(({ ReplayRow }) => ReplayRow)

/** Destinations that may be chosen: a page of the API. */
const maxDestinations = 200

/** Which destination is to get the call again; then what that means, and the replay. */
export function SendAgainDialog({ life, close }: { life: MessageAnswer; close: () => void }) {
  const live = useLive('GET /destinations', { query: { limit: maxDestinations } }, 0)
  const sources = new Set(life.copies.flatMap(({ call }) => call?.sourceId ?? []))
  // One dialog: a second one in its place would close with the first.
  if (live.data === null)
    return live.failure ? (
      <Dialog title="Send the call again" close={close}>
        <Failure failure={live.failure} />
      </Dialog>
    ) : null
  const choices = live.data.data.filter(
    ({ enabled, sourceIds }) => enabled && sourceIds.some((id) => sources.has(id)),
  )
  if (choices.length === 0)
    return (
      <Dialog title="Send the call again" close={close}>
        <p>No enabled destination takes calls of its source. Enable one, or give one this source.</p>
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={close}>
            Close
          </button>
        </div>
      </Dialog>
    )
  return <Chosen life={life} choices={choices} close={close} />
}

function Chosen({
  life,
  choices,
  close,
}: {
  life: MessageAnswer
  choices: readonly DestinationAnswer[]
  close: () => void
}) {
  const { messageId } = life
  const [id, setId] = useState(likeliest(life, choices))
  const body = { destinationId: id, messageId }
  const dry = useLongRequest<'POST /replays/dry-run', { looked: number; total: number }>(
    'POST /replays/dry-run',
    { body },
  )
  const act = async () => {
    const { data } = await request('POST /replays', { body })
    setQuery({ replay: data.id })
  }
  const isPaused = choices.some((each) => each.id === id && each.pause !== null)
  return (
    <ActionDialog
      title="Send the call again"
      action={`Send it to ${id}`}
      isPossible={dry.data !== null && !isNothing(dry.data)}
      act={act}
      close={close}
    >
      <Select
        label="To"
        value={id}
        choices={choices.map((each) => [
          each.id,
          each.name === each.id ? each.id : `${each.name} (${each.id})`,
        ])}
        change={setId}
      />
      {dry.failure ? (
        <Failure failure={dry.failure} retry={dry.reload} />
      ) : dry.data === null ? (
        <Loading what={`what ${id} has had of it`} />
      ) : (
        <Meaning id={id} found={dry.data} />
      )}
      {isPaused && <Note tone="warn">{id} is paused. The replay waits until it is resumed.</Note>}
      {life.copies.length > 1 && <p class="faint">Of its copies the newest is sent.</p>}
    </ActionDialog>
  )
}

/** Where it failed, or else the first one. */
function likeliest({ copies }: MessageAnswer, choices: readonly DestinationAnswer[]): string {
  const failed = copies.flatMap(({ deliveries }) =>
    deliveries.flatMap(({ state, destinationId }) => (state === 'dead_letter' ? [destinationId] : [])),
  )
  return (choices.find(({ id }) => failed.includes(id)) ?? choices[0]!).id
}

const countsOf = ({ counts: { held, skipped, failed, delivered } }: DryRunAnswer) => ({
  same: held + skipped + failed,
  other: delivered,
})

const isNothing = (found: DryRunAnswer): boolean => {
  const { same, other } = countsOf(found)
  return same + other + found.unfinished === 0
}

function Meaning({ id, found }: { id: string; found: DryRunAnswer }) {
  const { same, other } = countsOf(found)
  if (isNothing(found))
    return (
      <Note tone="warn">
        {found.erased > 0
          ? 'A deletion request covers the call: it is not sent again.'
          : `By its settings of today, ${id} does not get this call.`}
      </Note>
    )
  return (
    <>
      {same > 0 && <p>No receiver of {id} has taken it. It is sent under the delivery id that it has.</p>}
      {other > 0 && (
        <p>
          {id} has had it, or still waits for it. It is sent under a delivery id of its own, so that the
          receiver does not take the two for one.
        </p>
      )}
      {found.unfinished > 0 && <p>The forwarders have not finished it yet: the replay waits for that.</p>}
      <p class="faint">The settings of today apply. Other destinations get nothing.</p>
    </>
  )
}

const lookEveryMs = 2_000
/** Until the life of the call has what the replay sent. */
const lookAgainMs = 500

/** The replay that was started here, until what it sent has come to its end. */
export function SentAgain({
  id,
  life,
  reload,
  isReloading,
}: {
  id: string
  life: MessageAnswer
  reload: () => void
  isReloading: boolean
}) {
  const live = useLive('GET /replays/{id}', { id }, lookEveryMs)
  const isOver = live.data !== null && live.data.state !== 'running' && live.data.state !== 'paused'
  const isKnown = life.copies.some(({ steps }) => steps.some(({ replay }) => replay === id))
  const isAwaited = isOver && live.data!.sent > 0 && !isKnown
  useEffect(() => {
    if (!isAwaited || isReloading) return
    const timer = window.setTimeout(reload, lookAgainMs)
    return () => window.clearTimeout(timer)
  }, [isAwaited, isReloading])
  return (
    <section class="section" aria-labelledby="again-title">
      <div class="section-head">
        <h2 id="again-title">Sent again</h2>
      </div>
      <Loaded live={live} what="the replay">
        {(status) => (
          <>
            <ul class="rows card">
              <li>
                <Lazy
                  load={replayRow}
                  what="the replay"
                  props={{ job: status, status, turned: live.reload }}
                />
              </li>
            </ul>
            <p class="hidden" role="status">
              Replay {status.state}
            </p>
            {status.state === 'finished' && status.sent === 0 && <NothingSent status={status} />}
          </>
        )}
      </Loaded>
    </section>
  )
}

function NothingSent({ status: { destinationId, totals } }: { status: ReplayStatusAnswer }) {
  const why =
    totals.erased > 0
      ? 'a deletion request covers the call'
      : totals.lost > 0
        ? 'Kafka no longer held the call'
        : `by its settings of today, ${destinationId} does not get this call`
  return <Note tone="warn">Nothing was sent: {why}.</Note>
}
