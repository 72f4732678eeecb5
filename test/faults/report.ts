import { faultKinds } from './kinds/fault-kinds.ts'
import type { Answers } from './load/http-load.ts'
import type { Findings } from './evidence/findings.ts'
import type { Options } from './options.ts'
import type { Injected, Schedule } from './schedule.ts'
import type { UsageWatch } from './watch/usage-watch.ts'
import type { SideTally } from './evidence/side-verdict.ts'
import type { Tally } from './evidence/verdict.ts'

/** Where a run is: what a report says before `ended` is what was known when it was written. */
export type RunState = 'faults' | 'seeing it through' | 'judging' | 'ended' | 'broken off'

/** What there is to tell at any time. */
export interface Progress {
  state: RunState
  seed: number
  /** ISO 8601, of this report. */
  at: string
  /** Since the run began. */
  minutes: number
  processes: number
  brokers: number
  rate: number
  /** Acknowledged, by the brokers or by the collector. */
  calls: number
  /** That receivers read, and how many of them were not as they have to be. */
  requests: number
  wrongRequests: number
  /** What the collector said. */
  answers: Answers
  faults: Record<string, number>
  /** In the order in which they began; times are epoch ms. */
  injected: readonly Injected[]
  notInjected: readonly { kind: string; reason: string }[]
  usage: ReturnType<UsageWatch['summary']>
  usageSamples: UsageWatch['samples']
  /** So far; most of what can be found is found at the end only. */
  findings: ReturnType<Findings['toJSON']>
}

/** What a run came to. */
export interface Report extends Progress {
  passed: boolean
  tally: Tally
  /** Null where nothing was done beside the calls. */
  side: SideTally | null
  /** How often a partition got another owner. */
  moves: number
  /** How often a partition got another leader. */
  leaderMoves: number
  /** What this run should have looked at and could not. */
  notChecked: string[]
}

export function makeProgress(given: {
  state: RunState
  options: Options
  began: number
  calls: number
  answers: Answers
  requests: { requests: number; wrong: number }
  schedule: Schedule
  findings: Findings
  usage: UsageWatch
}): Progress {
  const { state, options, began, calls, answers, requests, schedule, findings, usage } = given
  const faults: Record<string, number> = {}
  for (const kind of faultKinds) {
    const count = schedule.injected.filter((fault) => fault.kind === kind).length
    if (count > 0) faults[kind] = count
  }
  return {
    state,
    seed: options.seed,
    at: new Date().toISOString(),
    minutes: Math.round((Date.now() - began) / 6_000) / 10,
    processes: options.processes,
    brokers: options.brokers,
    rate: options.rate,
    calls,
    requests: requests.requests,
    wrongRequests: requests.wrong,
    answers,
    faults,
    injected: schedule.injected,
    notInjected: schedule.notInjected,
    usage: usage.summary(),
    usageSamples: usage.samples,
    findings: findings.toJSON(),
  }
}

/** What was acknowledged, or lay in Kafka, and came to nothing. */
const losses: readonly string[] = [
  ...['acknowledged and not in Kafka', 'lost', 'ledger events lost', 'settings lost'],
  ...['memberships lost', 'erasures lost', 'replays lost', 'held and not sent'],
]
const lostIn = (findings: Report['findings']): number =>
  losses.reduce((sum, kind) => sum + (findings[kind]?.count ?? 0), 0)

/** The report as people read it. */
export function reportText(report: Report): string {
  const { tally, faults, notInjected, usage, findings } = report
  const { names, order } = tally
  const lines: [string, string | number][] = [
    ['seed', report.seed],
    ['minutes', report.minutes],
    ['forwarders', report.processes],
    ['brokers', report.brokers],
    ['calls', `${tally.calls}, ${tally.callsByHttp} of them through a collector`],
    ...Object.entries(report.answers.byStatus).map(([status, count]): [string, number] => [
      `  requests answered ${status}`,
      count,
    ]),
    ['  slowest answer', `${report.answers.slowestMs} ms`],
    ...Object.entries<Record<string, number>>({ ...tally.copies }).flatMap(([what, causes]) =>
      Object.entries(causes).map(([cause, count]): [string, number] => [
        `written twice: ${what}, ${cause}`,
        count,
      ]),
    ),
    ['deliveries', tally.deliveries],
    ['  delivered', tally.delivered],
    ['  delivered or not', `${tally.deliveredOrNot} (answers that may or may not count)`],
    ['  skipped', tally.skipped],
    ...Object.entries(tally.deadLetters).map(([reason, count]): [string, number] => [
      `  dead: ${reason}`,
      count,
    ]),
    ['  delivered and dead', tally.deliveredAndDead],
    ['  given up after timeouts', tally.givenUpAfterTimeouts],
    ...Object.entries(tally.givenUpBy).map(([what, count]): [string, number] => [`    ${what}`, count]),
    ['  given up by clocks', tally.givenUpByClocks],
    ['  given up by names that moved', tally.givenUpByNames],
    ['  given up for want of a token or proxy', tally.givenUpByWays],
    ['requests', tally.attempts],
    ['retries scheduled', tally.retryRecords],
    ['repeated by moves', `${tally.repeatedByMoves} (${report.moves} moves of partitions)`],
    ...Object.entries(tally.repeatedBy).map(([kind, count]): [string, number] => [`  ${kind}`, count]),
    ['repeated: answer not heard', tally.repeatedUnheard],
    ['repeated: its call lies there twice', tally.repeatedByCallCopies],
    ['repeated: scheduled twice', tally.repeatedByCopies],
    ...Object.entries(report.side ?? {}).map(([what, count]): [string, number] => [`beside: ${what}`, count]),
    ['moves of leaders', report.leaderMoves],
    ['not checked for time: clocks', tally.uncheckedForClocks],
    ['faults', Object.values(faults).reduce((sum, count) => sum + count, 0)],
    ...Object.entries(faults).map(([kind, count]): [string, number] => [`  ${kind}`, count]),
    ['names moved', names.moves],
    [
      '  requests to an address of before',
      names.late === 0
        ? 'none'
        : `${names.late}, the last ${(names.latestMs / 1_000).toFixed(1)} s after its move`,
    ],
    ['  requests after the time to follow', names.takenAfter],
    ['taken in strict order', `${order.taken}, ${order.behindFailures} right behind one that had failed`],
    ['  parked', order.parked],
    ['lost', lostIn(findings)],
    ['wrongly delivered', tally.wronglyDelivered],
    ['postrider audit', findings.audit ? 'finds something missing' : 'finds nothing missing'],
    ['NOT INJECTED', notInjected.length],
    ...notInjected.map(({ kind, reason }): [string, string] => [`  ${kind}`, reason]),
    ...report.notChecked.map((what): [string, string] => ['NOT CHECKED', what]),
  ]
  if (usage)
    for (const [name, { seconds, rssMb, files }] of Object.entries(usage))
      lines.push([`memory and files ${name}`, `${rssMb} MB, ${files} files, around ${seconds} s`])
  const width = Math.max(...lines.map(([name]) => name.length))
  const text = lines.map(([name, value]) => `${name.padEnd(width)}  ${value}`)
  for (const [kind, { count, examples }] of Object.entries(findings)) {
    text.push('', `FINDING ${kind}: ${count}`, ...examples.map((example) => `  ${example}`))
  }
  return `${text.join('\n')}\n`
}
