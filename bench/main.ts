// npm run bench                       every workload
// npm run bench -- throughput         one of them
// npm run bench -- throughput --calls 50000 --rounds 1 --out result.json
import { mkdir, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { collector } from './collector.ts'
import { client } from './client.ts'
import { audiences } from './audiences.ts'
import { memory } from './memory.ts'
import { startServers } from './rig.ts'
import { throughput } from './throughput.ts'
import type { Result, Workload } from './workload.ts'

const workloads: Workload[] = [throughput, memory, collector, client, audiences]

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    calls: { type: 'string' },
    rounds: { type: 'string' },
    out: { type: 'string', default: join(import.meta.dirname, 'results', 'latest.json') },
    help: { type: 'boolean', short: 'h' },
  },
})

const chosen =
  positionals.length === 0 ? workloads : workloads.filter(({ name }) => positionals.includes(name))
const unknown = positionals.filter((name) => !workloads.some((workload) => workload.name === name))
if (flags.help || unknown.length > 0) {
  if (unknown.length > 0) console.error(`no workload ${unknown.join(', ')}`)
  console.log('npm run bench -- [WORKLOAD …] [--calls N] [--rounds N] [--out FILE]\n')
  for (const { name, summary } of workloads) console.log(`  ${name.padEnd(12)} ${summary}`)
  process.exit(flags.help ? 0 : 2)
}

const machine = { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length, node: process.version }
const results: Record<string, Result> = {}
const servers = await startServers()
try {
  for (const { name, summary, run } of chosen) {
    console.log(`\n${name}: ${summary}`)
    const result = await run(servers, {
      ...(flags.calls && { calls: Number(flags.calls) }),
      ...(flags.rounds && { rounds: Number(flags.rounds) }),
    })
    results[name] = result
    print(result)
  }
} finally {
  await servers.stop()
}
await mkdir(dirname(flags.out), { recursive: true })
await writeFile(flags.out, `${JSON.stringify({ at: new Date().toISOString(), machine, results }, null, 2)}\n`)
console.log(`\n${machine.cores} × ${machine.cpu}, Node ${machine.node}. Everything measured: ${flags.out}`)

function print({ rows, ratio, goal, verdict }: Result): void {
  for (const { what, unit, value, cpu } of rows) {
    const share = cpu === undefined ? '' : `   ${Math.round(cpu * 100)} % of a core`
    console.log(`  ${what.padEnd(34)} ${value.toLocaleString('en').padStart(10)} ${unit}${share}`)
  }
  if (ratio === null) return
  console.log(
    `  ${'ratio'.padEnd(34)} ${ratio.toFixed(3).padStart(10)}${goal === null ? '' : `   (goal ${goal})`}`,
  )
  if (verdict) console.log(`  ${verdict}`)
}
