// node bench/rows.ts [FILE]   prints, in Markdown, the rows of docs/performance.md for what was measured of collector and client.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Goal, Row } from './workloads/workload.ts'

interface Measured {
  rows: Row[]
  goals?: Goal[]
  verdict: string | null
}

const file = process.argv[2] ?? join(import.meta.dirname, 'results', 'latest.json')
const { results, machine } = JSON.parse(await readFile(file, 'utf8')) as {
  machine: { cpu: string; cores: number; node: string }
  results: Record<string, Measured>
}
const chosen = ['collector', 'client'].filter((name) => results[name])
if (chosen.length === 0) {
  console.error(`${file} has neither collector nor client: npm run bench -- collector client`)
  process.exit(1)
}
const titles: Record<string, string> = { collector: 'The collector', client: 'The client library' }
for (const name of chosen) {
  const { rows, goals = [], verdict } = results[name]!
  console.log(`\n| ${titles[name]}, on ${machine.cores} × ${machine.cpu}, Node ${machine.node} | |  |`)
  console.log('| --- | --- | --- |')
  for (const { what, unit, value, cpu } of rows) {
    const share = cpu === undefined ? '' : `${Math.round(cpu * 100)} % of a core`
    console.log(`| ${what} | ${value.toLocaleString('en')} ${unit} | ${share} |`)
  }
  for (const { what, value, goal } of goals)
    console.log(`| ${what} | ${value.toFixed(2)} | the goal is ${goal} |`)
  if (verdict) console.log(`\n${verdict}`)
}
