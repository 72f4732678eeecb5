import type { AttemptAnswer } from '../../api/routes.ts'
import { wordsOf } from '../../components/figures.ts'
import { Badge } from '../../components/text.tsx'

/** How an attempt ended: its status, or why there is none. */
export const AttemptBadge = ({ attempt: { outcome, status } }: { attempt: AttemptAnswer }) => (
  <Badge
    tone={outcome === 'success' ? 'good' : 'bad'}
    text={status === null ? wordsOf(outcome) : `${status}${outcome === 'gone' ? ' gone' : ''}`}
    title={wordsOf(outcome)}
  />
)
