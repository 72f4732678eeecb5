import type { Result, Workload } from './workloads/workload.ts'

const width = 44

export function printResult({ rows, ratio, goal, goals = [], verdict, text = [] }: Result): void {
  for (const { what, unit, value, cpu } of rows) {
    const share = cpu === undefined ? '' : `   ${Math.round(cpu * 100)} % of a core`
    console.log(`  ${what.padEnd(width)} ${value.toLocaleString('en').padStart(10)} ${unit}${share}`)
  }
  if (ratio !== null) {
    const wanted = goal === null ? '' : `   (goal ${goal})`
    console.log(`  ${'ratio'.padEnd(width)} ${ratio.toFixed(3).padStart(10)}${wanted}`)
  }
  for (const { what, value, goal: wanted, met } of goals) {
    // Where no verdict is to be given, a figure stands for itself.
    const judged = verdict?.startsWith('no verdict') ? '' : met ? '   met' : '   MISSED'
    const figure = value.toLocaleString('en', { maximumFractionDigits: 3 })
    console.log(`  ${what.padEnd(width)} ${figure.padStart(10)}   (goal ${wanted})${judged}`)
  }
  for (const line of text) console.log(line)
  if (verdict) console.log(`  ${verdict}`)
}

export function printHelp(workloads: readonly Workload[]): void {
  console.log(
    [
      'npm run bench -- [WORKLOAD …] [--calls N] [--rounds N] [--seconds N] [--minutes N] [--quick] [--out FILE]',
      '',
      '  --calls N     the backlog, in calls',
      '  --rounds N    how often each side is measured; the medians count',
      '  --seconds N   how long is measured, where load comes at a rate',
      '  --minutes N   how long is watched, where something must not grow',
      '  --quick       small sizes, to see that it works: its figures are worth nothing',
      '  --out FILE    where everything measured goes as JSON; default bench/results/latest.json',
      '',
      'BENCH_NODE_FLAGS are flags of Node for every measured process. Without a WORKLOAD, all of them:',
      '',
    ].join('\n'),
  )
  for (const { name, summary, sizes = {} } of workloads) {
    const flags = Object.entries(sizes).map(([flag, value]) => `--${flag} ${value}`)
    console.log(`  ${name.padEnd(18)} ${summary}`)
    if (flags.length > 0) console.log(`  ${''.padEnd(18)} (${flags.join(' ')})`)
  }
}
