import { pathTo } from '../../../console/page-paths.ts'
import { may } from '../../app/session.ts'
import type { DestinationSummary } from '../../api/routes.ts'
import { Badge } from '../../components/badge.tsx'
import { countOf, countText } from '../../components/figures.ts'
import { DestinationLink } from './destination-row.tsx'
import { Row } from './problem-row.tsx'

/** A destination that others would wait for, were its calls not put off. */
export function SlowRow({ destination }: { destination: DestinationSummary }) {
  const { id, queued, deferred } = destination
  return (
    <Row
      badge={<Badge tone="warn" text="slow" />}
      title={<DestinationLink destination={destination} />}
      text={`It answers more slowly than its calls come. ${countOf(queued, 'attempt')} wait in forwarders; within an hour, ${countText(deferred)} were put off so that other destinations need not wait. If it answers faster with less at once, limit its requests.`}
    >
      {may('admin') && (
        <a class="button" href={`${pathTo('destination', { id })}?view=settings`}>
          Limit it
        </a>
      )}
    </Row>
  )
}
