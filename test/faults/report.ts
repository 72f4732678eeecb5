import { faultKinds } from './fault-kinds.ts'
import type { Findings } from './findings.ts'
import type { Options } from './options.ts'
import type { Injected, Schedule } from './schedule.ts'
import type { UsageWatch } from './usage-watch.ts'
import type { Tally } from './verdict.ts'

export interface Report {
  seed: number
  minutes: number
  processes: number
  passed: boolean
  tally: Tally
  faults: Record<string, number>
  /** In the order in which they began; times are epoch ms. */
  injected: readonly Injected[]
  notInjected: { kind: string; reason: string }[]
  /** What this run should have looked at and could not. */
  notChecked: string[]
  usage: ReturnType<UsageWatch['summary']>
  findings: ReturnType<Findings['toJSON']>
}

export function makeReport(given: {
  options: Options
  began: number
  tally: Tally
  schedule: Schedule
  findings: Findings
  usage: UsageWatch
  notChecked: string[]
}): Report {
  const { options, began, tally, schedule, findings, usage, notChecked } = given
  const faults: Record<string, number> = {}
  for (const kind of faultKinds) {
    const count = schedule.injected.filter((fault) => fault.kind === kind).length
    if (count > 0) faults[kind] = count
  }
  return {
    seed: options.seed,
    minutes: Math.round((Date.now() - began) / 6_000) / 10,
    processes: options.processes,
    passed: findings.isEmpty,
    tally,
    faults,
    injected: schedule.injected,
    notInjected: schedule.notInjected,
    notChecked,
    usage: usage.summary(),
    findings: findings.toJSON(),
  }
}

/** The report as people read it. */
export function reportText(report: Report): string {
  const { tally, faults, notInjected, usage, findings } = report
  const lines: [string, string | number][] = [
    ['seed', report.seed],
    ['minutes', report.minutes],
    ['forwarders', report.processes],
    ['calls', `${tally.calls} (${tally.callsWrittenTwice} records more: written twice by the runner)`],
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
    ['requests', tally.attempts],
    ['hand-overs to tiers', tally.handOvers],
    ['repeated by faults', tally.repeatedByFaults],
    ...Object.entries(tally.repeatedBy).map(([kind, count]): [string, number] => [`  ${kind}`, count]),
    ['repeated: answer not heard', tally.repeatedUnheard],
    ['repeated: receivers busy', tally.repeatedWhileBusy],
    ['receivers busy', `${Math.round(tally.receiversBusyMs / 1_000)} s`],
    ['not checked for time: clocks', tally.uncheckedForClocks],
    ['faults', Object.values(faults).reduce((sum, count) => sum + count, 0)],
    ...Object.entries(faults).map(([kind, count]): [string, number] => [`  ${kind}`, count]),
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
