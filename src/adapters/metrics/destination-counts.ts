import { deferralReasons } from '../../core/delivery/disposition.ts'
import type { DeferralReason } from '../../core/delivery/disposition.ts'
import { deadLetterReasons } from '../../core/delivery/delivery.ts'
import type { DeadLetterReason } from '../../core/delivery/delivery.ts'
import { dispositionLabels as dispositions, type DispositionLabel } from '../../core/ledger/delivery-event.ts'
import { releaseReasons, type ReleaseReason } from '../../core/ordering/strict-terms.ts'
import { outcomeKinds } from '../../core/delivery/outcome.ts'
import type { Outcome } from '../../core/delivery/outcome.ts'
import type { DestinationMetrics } from '../../forwarder/metrics.ts'
import { escapeValue, heading, inPieces } from './exposition.ts'
import { Histogram } from './exposition.ts'

/** `deferred` is an outcome of a delivery, but no attempt was made. */
const attemptKinds = outcomeKinds.filter((kind) => kind !== 'deferred')
/** A status outside of 100-599 is of class `other`. */
const codeClasses = ['other', '1xx', '2xx', '3xx', '4xx', '5xx'] as const

/** An attempt ends within five seconds: `WEBHOOK_TIMEOUT` cannot be longer. */
const durationBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** Index by name; objects without prototype, so that the lookup of a constant name stays one inline cache. */
function indexOf<T extends string>(names: readonly T[]): Record<T, number> {
  return Object.fromEntries(names.map((name, index) => [name, index])) as Record<T, number>
}
const kindIndex = indexOf(outcomeKinds)
const dispositionIndex = indexOf(dispositions)
const reasonIndex = indexOf(deadLetterReasons)
const deferralIndex = indexOf(deferralReasons)
const releaseIndex = indexOf(releaseReasons)

const zeros = (count: number): number[] => new Array<number>(count).fill(0)

/** Everything counted for one destination, in plain arrays: the hot path hashes no labels. */
export class DestinationCounters implements DestinationMetrics {
  /** `destination="…"` */
  readonly label: string
  readonly attempts = zeros(outcomeKinds.length)
  readonly responses = zeros(codeClasses.length)
  readonly dispositions = zeros(dispositions.length)
  readonly deadLetters = zeros(deadLetterReasons.length)
  readonly deferrals = zeros(deferralReasons.length)
  readonly releases = zeros(releaseReasons.length)
  filteredCalls = 0
  filterErrors = 0
  readonly durations = new Histogram(durationBounds)

  constructor(id: string) {
    this.label = `destination="${escapeValue(id)}"`
  }

  attempt(outcome: Outcome): void {
    this.attempts[kindIndex[outcome.kind]]!++
    this.durations.observe(outcome.durationMs / 1_000)
    if (outcome.status === null) return
    const codeClass = (outcome.status / 100) | 0
    this.responses[codeClass < codeClasses.length ? codeClass : 0]!++
  }

  disposition(label: DispositionLabel, count = 1): void {
    this.dispositions[dispositionIndex[label]]! += count
  }

  deferral(reason: DeferralReason, count = 1): void {
    this.deferrals[deferralIndex[reason]]! += count
  }

  released(reason: ReleaseReason): void {
    this.releases[releaseIndex[reason]]!++
  }

  filtered(isFault: boolean): void {
    this.filteredCalls++
    if (isFault) this.filterErrors++
  }

  deadLetter(reason: string): void {
    this.deadLetters[reasonIndex[reason as DeadLetterReason] ?? reasonIndex.internal_error]!++
  }
}

const attemptsName = 'postrider_webhook_attempts_total'
const timeoutsName = 'postrider_webhook_timeouts_total'
const responsesName = 'postrider_webhook_responses_total'
const durationName = 'postrider_webhook_attempt_duration_seconds'
const deliveriesName = 'postrider_deliveries_total'
const deferralsName = 'postrider_deferrals_total'
const releasedName = 'postrider_order_released_total'
const filteredName = 'postrider_filtered_calls_total'
const filterErrorsName = 'postrider_filter_errors_total'
const deadLettersName = 'postrider_dead_letters_total'

/** Lines for each label value that was ever counted; a value that never came up is not shown. */
function counted(
  name: string,
  label: string,
  by: string,
  values: readonly string[],
  countOf: (index: number) => number,
): string {
  let text = ''
  for (let index = 0; index < values.length; index++) {
    const count = countOf(index)
    if (count > 0) text += `${name}{${label},${by}="${values[index]!}"} ${count}\n`
  }
  return text
}

/**
 * The families by destination. What alerts watch for a first increase (time-outs, dispositions) is shown at zero
 * as well; the wider sets (outcomes, code classes, reasons) once counted, which keeps a page of 1,000
 * destinations to what they use.
 */
export function* exposeDestinations(all: readonly DestinationCounters[]): Generator<string> {
  yield* inPieces(
    heading(attemptsName, 'counter', 'Attempts at one URL, by what came of them.'),
    all,
    (one) =>
      counted(
        attemptsName,
        one.label,
        'outcome',
        attemptKinds,
        (at) => one.attempts[kindIndex[attemptKinds[at]!]]!,
      ),
  )
  yield* inPieces(
    heading(timeoutsName, 'counter', 'Attempts without a complete response in time.'),
    all,
    (one) => `${timeoutsName}{${one.label}} ${one.attempts[kindIndex.timeout]!}\n`,
  )
  yield* inPieces(
    heading(responsesName, 'counter', 'Responses, by the first digit of their status.'),
    all,
    (one) => counted(responsesName, one.label, 'code_class', codeClasses, (at) => one.responses[at]!),
  )
  yield* inPieces(
    heading(durationName, 'histogram', 'From taking a request off its queue to the end of its response.'),
    all,
    (one) => one.durations.lines(durationName, one.label),
  )
  yield* inPieces(heading(deliveriesName, 'counter', 'Deliveries, by what became of them.'), all, (one) => {
    let text = ''
    for (let at = 0; at < dispositions.length; at++) {
      text += `${deliveriesName}{${one.label},disposition="${dispositions[at]!}"} ${one.dispositions[at]!}\n`
    }
    return text
  })
  yield* inPieces(
    heading(deferralsName, 'counter', 'Deliveries that one URL was not sent for now, by reason.'),
    all,
    (one) => counted(deferralsName, one.label, 'reason', deferralReasons, (at) => one.deferrals[at]!),
  )
  yield* inPieces(
    heading(
      releasedName,
      'counter',
      'Calls that later ones of their user may overtake after all, by reason.',
    ),
    all,
    (one) => counted(releasedName, one.label, 'reason', releaseReasons, (at) => one.releases[at]!),
  )
  yield* inPieces(
    heading(filteredName, 'counter', 'Calls that a condition (--where) left out.'),
    all,
    (one) => (one.filteredCalls > 0 ? `${filteredName}{${one.label}} ${one.filteredCalls}\n` : ''),
  )
  yield* inPieces(
    heading(filterErrorsName, 'counter', 'Calls left out because the condition could not be evaluated.'),
    all,
    (one) => (one.filterErrors > 0 ? `${filterErrorsName}{${one.label}} ${one.filterErrors}\n` : ''),
  )
  yield* inPieces(heading(deadLettersName, 'counter', 'What finally failed, by reason.'), all, (one) =>
    counted(deadLettersName, one.label, 'reason', deadLetterReasons, (at) => one.deadLetters[at]!),
  )
}
