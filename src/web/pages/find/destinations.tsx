import { pathTo } from '../../../console/page-paths.ts'
import { Empty, NoValue } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { Badge, CopyButton } from '../../components/text.tsx'
import { Ago } from '../../components/time.tsx'
import { deliveryWaitText } from '../../components/wait-text.ts'
import { stateNames, stateTones } from '../../components/delivery-state.ts'
import { DeadLetterLink, StepsOf } from './steps.tsx'
import { endText, reasonText, type CallDelivery, type CallCopy } from './words.ts'

/** A destination of the call's source: with its delivery, or with why there is none. */
interface Row {
  key: string
  destinationId: string
  urlId: string | null
  delivery: CallDelivery | null
  reason: string | null
  isLookedFor: boolean
}

/** Behind its own id, a delivery that a replay sent again has the replay's. */
const isOf = (deliveryId: string, lookedFor: string): boolean =>
  lookedFor === deliveryId || lookedFor.startsWith(`${deliveryId}:replay-`)

export const hasDelivery = ({ deliveries }: CallCopy, lookedFor: string): boolean =>
  deliveries.some(({ deliveryId }) => isOf(deliveryId, lookedFor))

function rowsOf({ plan, deliveries }: CallCopy, lookedFor: string | null): Row[] {
  const planned = deliveries.map((delivery) => ({
    key: delivery.deliveryId,
    destinationId: delivery.destinationId,
    urlId: delivery.urlId,
    delivery,
    reason: null,
    isLookedFor: lookedFor !== null && isOf(delivery.deliveryId, lookedFor),
  }))
  const others = (plan?.destinations ?? []).flatMap(({ destinationId, reason }) =>
    // A replay may have sent it all the same.
    reason === null || deliveries.some((each) => each.destinationId === destinationId)
      ? []
      : [{ key: destinationId, destinationId, urlId: null, delivery: null, reason, isLookedFor: false }],
  )
  return [...planned, ...others]
}

/** For which destinations it was planned, for which not and why, and what became of each delivery. */
export function Destinations({ copy, deliveryId }: { copy: CallCopy; deliveryId: string | null }) {
  const rows = rowsOf(copy, deliveryId)
  return (
    <section class="section" aria-labelledby="destinations-title">
      <div class="section-head">
        <h2 id="destinations-title">Where it went</h2>
      </div>
      {rows.length > 0 ? (
        <Table label="Destinations" columns={columnsOf(copy)} rows={rows} keyOf={({ key }) => key} />
      ) : (
        <Nowhere copy={copy} />
      )}
      <Honest copy={copy} />
    </section>
  )
}

function Nowhere({ copy: { plan, record } }: { copy: CallCopy }) {
  if (record === null) return <Empty title="For which destinations it was planned is not known." />
  const { state, reason } = record
  return (
    <Empty
      title={plan?.destinations.length === 0 ? 'Its source has no destination.' : 'It came to no delivery.'}
    >
      <p>
        <Badge tone={stateTones[state]} text={stateNames[state]} />{' '}
        <DeadLetterLink id={record.deadLetterId} />
      </p>
      {reason !== null && <p>{reasonText(reason)}</p>}
    </Empty>
  )
}

/** What is not known, and why. */
function Honest({ copy: { plan, deliveries } }: { copy: CallCopy }) {
  const notes: string[] = []
  if (plan?.isCertain === false)
    notes.push('The settings changed while it came in: for whom it was planned is not certain.')
  else if (plan?.by === 'settings')
    notes.push('The plan is derived from the settings of that time; with LEDGER=all it is recorded.')
  if (plan === null && deliveries.length > 0)
    notes.push('For whom else it was planned is not known: its record or the settings of then are gone.')
  if (deliveries.some(({ byTally, state }) => byTally && state !== 'held'))
    notes.push(
      'With LEDGER=failures successes at the first attempt are counted, not listed: the time is that of the tally.',
    )
  if (notes.length === 0) return null
  return (
    <ul class="find-notes">
      {notes.map((note) => (
        <li key={note}>{note}</li>
      ))}
    </ul>
  )
}

const columnsOf = (copy: CallCopy): Column<Row>[] => [
  {
    head: 'Destination',
    isName: true,
    cell: ({ destinationId, urlId, isLookedFor }) => (
      <span class="thing">
        <a href={pathTo('destination', { id: destinationId })}>{destinationId}</a>
        {urlId !== null && <span class="faint">URL {urlId}</span>}
        {isLookedFor && <span class="faint">the delivery looked for</span>}
      </span>
    ),
  },
  {
    head: 'What became of it',
    cell: ({ delivery, reason }) => (
      <div class="find-end">
        {delivery ? (
          <>
            <Badge tone={stateTones[delivery.state]} text={stateNames[delivery.state]} />
            <div>
              {endText(delivery)} <Due delivery={delivery} />
              <DeadLetterLink id={delivery.deadLetterId} />
              {delivery.waits && <p>{deliveryWaitText(delivery.waits)}</p>}
              <StepsOf copy={copy} deliveryId={delivery.deliveryId} />
            </div>
          </>
        ) : (
          <>
            <Badge tone="plain" text="not planned" />
            <span>Because {reasonText(reason!)}.</span>
          </>
        )}
      </div>
    ),
  },
  {
    head: 'When',
    moves: 'narrow',
    cell: ({ delivery }) =>
      delivery?.at ? (
        <Ago at={delivery.at} />
      ) : (
        <NoValue why={delivery ? 'Not yet' : 'There is no delivery'} />
      ),
  },
  {
    head: 'Delivery id',
    moves: 'medium',
    cell: ({ delivery }) =>
      delivery ? (
        <span class="with-button">
          <span class="id cut" title={delivery.deliveryId}>
            {delivery.deliveryId}
          </span>
          <CopyButton text={delivery.deliveryId} what="the delivery id" />
        </span>
      ) : (
        <NoValue why="There is no delivery" />
      ),
  },
]

function Due({ delivery: { state, dueAt, pausedAt } }: { delivery: CallDelivery }) {
  if (state === 'waiting' && dueAt !== null)
    return (
      <>
        Due <Ago at={dueAt} />.
      </>
    )
  if (state === 'held' && pausedAt !== null)
    return (
      <>
        The pause began <Ago at={pausedAt} />.
      </>
    )
  return null
}
