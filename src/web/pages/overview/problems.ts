// What needs somebody, worst first, from what the API says. Pure: it is tested without a browser.
import { healthRank, isWell } from '../../../core/statistics/health.ts'
import type {
  AuditAnswer,
  DeletionAnswer,
  DestinationSummary,
  OverviewAnswer,
  ProcessAnswer,
} from '../../api/routes.ts'

export type Problem =
  | { kind: 'destination'; destination: DestinationSummary }
  | { kind: 'slow'; destination: DestinationSummary }
  | { kind: 'dead_letters'; destination: DestinationSummary; count: number }
  | { kind: 'no_forwarder' }
  | { kind: 'process_gone'; process: ProcessAnswer }
  | { kind: 'lag'; calls: number; seconds: number | null }
  | { kind: 'overdue'; ms: number }
  | { kind: 'audit'; at: string; faults: number }
  | { kind: 'deletion'; deletion: DeletionAnswer }

/** What can be done about one at once. */
export type Act = 'pause' | 'resume' | 'try_again' | 'finish'

export interface ProblemFacts {
  overview: OverviewAnswer
  /** Null while it is not known. */
  audit: AuditAnswer | null
  /** Those that are not finished. */
  deletions: readonly DeletionAnswer[]
  processes: readonly ProcessAnswer[]
  /** Calls a second that forwarders finish, of late. */
  pace: number
  /** Epoch ms. */
  now: number
}

/** A backlog that the forwarders work off within that is none to act on, in seconds. */
const harmlessSeconds = 30
/** A deletion that is being written looks like one that was interrupted, in ms. */
const writingMs = 300_000

export function problemsOf({ overview, audit, deletions, processes, pace, now }: ProblemFacts): Problem[] {
  const { destinations, lag } = overview
  const problems: Problem[] = []
  // Before the ledger was read once, nothing can be said.
  if (overview.asOf !== null && lag === null) problems.push({ kind: 'no_forwarder' })
  for (const process of processes)
    if (process.state === 'gone') problems.push({ kind: 'process_gone', process })
  // That nothing is known is raised once, and not for each.
  const troubled = destinations.filter(({ health }) => !isWell(health) && health.word !== 'not_known')
  for (const destination of troubled.toSorted((a, b) => healthRank(a.health) - healthRank(b.health)))
    problems.push({ kind: 'destination', destination })
  const seconds = lag === null || pace === 0 ? null : lag / pace
  if (lag !== null && lag > 0 && (seconds === null || seconds > harmlessSeconds))
    problems.push({ kind: 'lag', calls: lag, seconds })
  const { retriesOverdueMs } = overview
  if (retriesOverdueMs !== null && retriesOverdueMs > harmlessSeconds * 1_000)
    problems.push({ kind: 'overdue', ms: retriesOverdueMs })
  for (const destination of destinations)
    if (isSlow(destination)) problems.push({ kind: 'slow', destination })
  const letters = destinations.map((destination) => ({
    destination,
    count: Object.values(destination.deadLetterReasons).reduce((sum, count) => sum + count, 0),
  }))
  for (const each of letters.toSorted((a, b) => b.count - a.count))
    if (each.count > 0) problems.push({ kind: 'dead_letters', ...each })
  if (audit?.last && !audit.last.ok)
    problems.push({ kind: 'audit', at: audit.last.at, faults: audit.last.faults.length })
  for (const deletion of deletions)
    if (deletion.state !== 'finished' && now - Date.parse(deletion.requestedAt) > writingMs)
      problems.push({ kind: 'deletion', deletion })
  return problems
}

/** Its URLs answer, but not as fast as its calls come: they were put off so that others go on, and more wait still. */
const isSlow = ({ health, queued, deferred }: DestinationSummary): boolean =>
  isWell(health) && queued > 0 && deferred > 0

/** The first sentence of the page. */
export function headlineOf(problems: readonly Problem[]): string {
  if (problems.length === 0) return 'All well'
  const destinations = new Set(
    problems.flatMap((problem) => ('destination' in problem ? [problem.destination.id] : [])),
  ).size
  const others = problems.filter((problem) => !('destination' in problem)).length
  const parts = [
    destinations > 0 && `${destinations} ${destinations === 1 ? 'destination' : 'destinations'}`,
    others > 0 && `${others} other ${others === 1 ? 'thing' : 'things'}`,
  ].filter(Boolean)
  const text = destinations === 0 ? `${others} ${others === 1 ? 'thing' : 'things'}` : parts.join(' and ')
  return `${text} ${destinations + others === 1 ? 'needs' : 'need'} you`
}
