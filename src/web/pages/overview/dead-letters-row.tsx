import { linkTo } from '../../../console/page-paths.ts'
import type { DestinationSummary } from '../../api/routes.ts'
import { Badge } from '../../components/badge.tsx'
import { countOf, countText, wordsOf } from '../../components/figures.ts'
import { DestinationLink } from './destination-row.tsx'
import { Row } from './problem-row.tsx'

/** What of a destination failed finally within the hour, and the way to send all of it again. */
export function DeadLettersRow({ destination, count }: { destination: DestinationSummary; count: number }) {
  const { id, deadLetterReasons } = destination
  const reasons = Object.entries(deadLetterReasons).toSorted(([, a], [, b]) => b - a)
  const why =
    reasons.length === 1
      ? wordsOf(reasons[0]![0])
      : reasons.map(([reason, each]) => `${countText(each)} ${wordsOf(reason)}`).join(', ')
  return (
    <Row
      badge={<Badge tone="bad" text="dead letters" />}
      title={<DestinationLink destination={destination} />}
      text={`${countOf(count, 'dead letter')} within an hour: ${why}.`}
    >
      <a class="button" href={linkTo('deadLetters', { destination: id, since: '1h', select: 'all' })}>
        Look and replay
      </a>
    </Row>
  )
}
