// What counts say, for people: totals, shares, durations.
import type { OutcomeKind } from '../delivery/outcome.ts'
import { countFields } from '../ledger/result-codes.ts'
import { attemptBuckets } from '../ledger/tally.ts'
import { quantileOf, type RollupCounts, type TalliedFrom } from './rollup.ts'

type CountField = (typeof countFields)[number]

/** From where deliveries came, and what became of them. */
export type DeliveryCounts = Record<TalliedFrom | CountField, number>

export interface AttemptFigures {
  attempts: number
  failed: number
  /** Successes over attempts, from 0 to 1; null without attempts. */
  successRate: number | null
  /** In ms, estimated from buckets; null without attempts. */
  p50Ms: number | null
  p95Ms: number | null
  p99Ms: number | null
}

/** What came back: classes of statuses, and `none` where nothing did. */
export const answerClasses = ['2xx', '3xx', '4xx', '5xx', 'none'] as const
export type AnswerClass = (typeof answerClasses)[number]

const classOf: Readonly<Partial<Record<OutcomeKind, AnswerClass>>> = {
  success: '2xx',
  redirect: '3xx',
  status_4xx: '4xx',
  status_429: '4xx',
  gone: '4xx',
  status_5xx: '5xx',
}

/** Attempts by what came back, over all URLs. An outcome of a later version counts as none. */
export function answersOf(counts: RollupCounts): Record<AnswerClass, number> {
  const answers = Object.fromEntries(answerClasses.map((each) => [each, 0])) as Record<AnswerClass, number>
  for (const [name, count] of Object.entries(counts)) {
    const [what, , outcome] = name.split('/')
    if (what === 'end') answers[classOf[outcome as OutcomeKind] ?? 'none'] += count
  }
  return answers
}

export interface UrlFigures extends AttemptFigures {
  urlId: string
  outcomes: Record<string, number>
  /** A count for each bucket. */
  durations: number[]
}

export interface DestinationFigures extends DeliveryCounts, AttemptFigures {
  skipReasons: Record<string, number>
  deadLetterReasons: Record<string, number>
  /** Of calls that later ones may overtake although the order is strict. */
  releaseReasons: Record<string, number>
  urls: UrlFigures[]
}

export interface SourceFigures {
  accepted: number
  duplicate: number
  refused: number
  /** Of those accepted: flagged as a bot's. */
  flagged: number
}

export interface CollectedFigures extends SourceFigures {
  types: ({ type: string } & SourceFigures)[]
  refusals: Record<string, number>
}

export const deliveryFields = ['planned', 'replayed', 'cameDue', ...countFields] as const

export function deliveryCountsOf(counts: RollupCounts): DeliveryCounts {
  return Object.fromEntries(deliveryFields.map((field) => [field, counts[field] ?? 0])) as DeliveryCounts
}

/** Over all URLs. */
export function attemptFiguresOf(counts: RollupCounts): AttemptFigures {
  const [outcomes, durations] = [new Map<string, number>(), noBuckets()]
  for (const [name, count] of Object.entries(counts)) {
    const [what, , which] = name.split('/')
    if (what === 'end') outcomes.set(which!, (outcomes.get(which!) ?? 0) + count)
    else if (what === 'took') durations[Number(which)]! += count
  }
  return figuresOf(outcomes, durations)
}

export function destinationFiguresOf(counts: RollupCounts): DestinationFigures {
  const urls = new Map<string, { outcomes: Map<string, number>; durations: number[] }>()
  const of = (urlId: string) => {
    let url = urls.get(urlId)
    if (!url) urls.set(urlId, (url = { outcomes: new Map(), durations: noBuckets() }))
    return url
  }
  const [skipReasons, deadLetterReasons] = [new Map<string, number>(), new Map<string, number>()]
  const releaseReasons = new Map<string, number>()
  for (const [name, count] of Object.entries(counts)) {
    const [what, one, other] = name.split('/')
    if (what === 'skipped' && one !== undefined) skipReasons.set(one, count)
    else if (what === 'dead') deadLetterReasons.set(one!, count)
    else if (what === 'released') releaseReasons.set(one!, count)
    else if (what === 'end') of(one!).outcomes.set(other!, count)
    else if (what === 'took') of(one!).durations[Number(other)]! += count
  }
  return {
    ...deliveryCountsOf(counts),
    ...attemptFiguresOf(counts),
    skipReasons: Object.fromEntries(skipReasons),
    deadLetterReasons: Object.fromEntries(deadLetterReasons),
    releaseReasons: Object.fromEntries(releaseReasons),
    urls: [...urls]
      .map(([urlId, { outcomes, durations }]) => ({
        urlId,
        ...figuresOf(outcomes, durations),
        outcomes: Object.fromEntries(outcomes),
        durations,
      }))
      .sort((a, b) => compareUrls(a.urlId, b.urlId)),
  }
}

/** u2 comes before u10. */
export const compareUrls = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : 1)

export function sourceFiguresOf(counts: RollupCounts): SourceFigures {
  const figures = noFigures()
  for (const [name, count] of Object.entries(counts)) {
    const what = name.split('/')[0]!
    if (isCollected(what)) figures[what] += count
  }
  return figures
}

export function collectedFiguresOf(counts: RollupCounts): CollectedFigures {
  const types = new Map<string, SourceFigures>()
  const refusals = new Map<string, number>()
  for (const [name, count] of Object.entries(counts)) {
    const [what, which] = name.split('/') as [string, string]
    if (what === 'code') refusals.set(which, count)
    if (!isCollected(what)) continue
    let type = types.get(which)
    if (!type) types.set(which, (type = noFigures()))
    type[what] += count
  }
  return {
    ...sourceFiguresOf(counts),
    types: [...types]
      .map(([type, figures]) => ({ type, ...figures }))
      .sort((a, b) => (a.type < b.type ? -1 : 1)),
    refusals: Object.fromEntries(refusals),
  }
}

const noFigures = (): SourceFigures => ({ accepted: 0, duplicate: 0, refused: 0, flagged: 0 })

const isCollected = (what: string): what is keyof SourceFigures => Object.hasOwn(noFigures(), what)

const noBuckets = (): number[] => new Array<number>(attemptBuckets.length + 1).fill(0)

function figuresOf(outcomes: ReadonlyMap<string, number>, durations: readonly number[]): AttemptFigures {
  let attempts = 0
  for (const count of outcomes.values()) attempts += count
  const succeeded = outcomes.get('success') ?? 0
  return {
    attempts,
    failed: attempts - succeeded,
    successRate: attempts === 0 ? null : succeeded / attempts,
    p50Ms: quantileOf(durations, 0.5),
    p95Ms: quantileOf(durations, 0.95),
    p99Ms: quantileOf(durations, 0.99),
  }
}
