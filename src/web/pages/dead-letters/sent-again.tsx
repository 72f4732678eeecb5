import type { DeadLetterSummary } from '../../api/routes.ts'
import { stateNames } from '../../components/delivery-state.ts'
import { Ago } from '../../components/time.tsx'

type SentAgain = NonNullable<DeadLetterSummary['sentAgain']>

/** How a replay of it ended: `delivered 12 min ago, by replay-…`. */
export function SentAgainText({ sent: { at, replay, state, endedAt } }: { sent: SentAgain }) {
  return (
    <>
      {state === 'dead_letter' ? 'failed again' : stateNames[state]} <Ago at={endedAt ?? at} />
      {replay !== null && (
        <>
          , by <span class="id">{replay}</span>
        </>
      )}
    </>
  )
}
