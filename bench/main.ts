// npm run bench                       every workload
// npm run bench -- throughput         one of them
// npm run bench -- throughput --calls 50000 --rounds 1 --out result.json
import { mkdir, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { audiences } from './workloads/audiences.ts'
import { busyUsers } from './workloads/busy-users.ts'
import { client } from './workloads/client.ts'
import { collector } from './workloads/collector.ts'
import { flood } from './workloads/flood.ts'
import { isolation } from './workloads/isolation.ts'
import { latency } from './workloads/latency.ts'
import { ledger } from './workloads/ledger.ts'
import { clientsSideBySide } from './workloads/posts/http-clients.ts'
import { handshakes } from './workloads/posts/handshakes.ts'
import { manyDestinations } from './workloads/posts/many-destinations.ts'
import { memory } from './workloads/memory.ts'
import { pacing } from './workloads/scale/pacing.ts'
import { settings } from './workloads/scale/settings.ts'
import { outage } from './workloads/outage.ts'
import { putOff } from './workloads/put-off.ts'
import { parkedRetries } from './workloads/parked-retries.ts'
import { peers } from './workloads/peers/peers.ts'
import { processes } from './workloads/processes.ts'
import { profile } from './workloads/profile.ts'
import { printHelp, printResult } from './report.ts'
import { startServers } from './rig.ts'
import { webConsole } from './workloads/console/console.ts'
import { replay } from './workloads/console/replay.ts'
import { steps } from './workloads/steps.ts'
import { statistics } from './workloads/console/statistics.ts'
import { why } from './workloads/console/why.ts'
import { plans } from './workloads/plans.ts'
import { lowRates } from './workloads/rates.ts'
import { versions } from './workloads/versions.ts'
import { batches, strictOrder, templates } from './workloads/shapes.ts'
import { https, slowReceiver, throughput } from './workloads/posts/throughput.ts'
import type { Result, Sizes, Workload } from './workloads/workload.ts'

const workloads: Workload[] = [
  ...[
    throughput,
    slowReceiver,
    https,
    handshakes,
    clientsSideBySide,
    peers,
    profile,
    latency,
    isolation,
    flood,
    busyUsers,
    manyDestinations,
    processes,
  ],
  ...[
    parkedRetries,
    outage,
    putOff,
    ledger,
    plans,
    templates,
    batches,
    strictOrder,
    memory,
    collector,
    client,
    audiences,
    statistics,
    why,
    replay,
    webConsole,
  ],
  pacing,
  settings,
  steps,
  lowRates,
  versions,
]
/** For workloads that do not say what is quick for them. */
const quickSizes: Sizes = { calls: 20_000, rounds: 1 }

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    calls: { type: 'string' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    minutes: { type: 'string' },
    quick: { type: 'boolean', default: false },
    out: { type: 'string', default: join(import.meta.dirname, 'results', 'latest.json') },
    help: { type: 'boolean', short: 'h' },
  },
})

const unknown = positionals.filter((name) => !workloads.some((workload) => workload.name === name))
const given: Sizes = {}
for (const name of ['calls', 'rounds', 'seconds', 'minutes'] as const) {
  const text = flags[name]
  if (text === undefined) continue
  given[name] = Number(text)
  if (!Number.isInteger(given[name]) || given[name] < 1) unknown.push(`--${name} ${text}`)
}
if (flags.help || unknown.length > 0) {
  if (unknown.length > 0) console.error(`neither a workload nor a size: ${unknown.join(', ')}\n`)
  printHelp(workloads)
  process.exit(unknown.length > 0 ? 2 : 0)
}

const chosen =
  positionals.length === 0 ? workloads : workloads.filter(({ name }) => positionals.includes(name))
const machine = { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length, node: process.version }
const results: Record<string, Result & { sizes: Sizes; seconds: number }> = {}
await mkdir(dirname(flags.out), { recursive: true })
const servers = await startServers()
try {
  for (const { name, summary, sizes = {}, quick = quickSizes, run } of chosen) {
    console.log(`\n${name}: ${summary}`)
    const chosenSizes = { ...sizes, ...(flags.quick && quick), ...given }
    const began = performance.now()
    const result = await run(servers, chosenSizes)
    const seconds = Math.round((performance.now() - began) / 1_000)
    printResult(result)
    results[name] = { ...result, sizes: chosenSizes, seconds }
    // After each one: a later one that breaks off takes nothing away.
    await save()
  }
} finally {
  await servers.stop()
}
console.log(`\n${machine.cores} × ${machine.cpu}, Node ${machine.node}. Everything measured: ${flags.out}`)

async function save(): Promise<void> {
  const content = { at: new Date().toISOString(), machine, quick: flags.quick, results }
  await writeFile(flags.out, `${JSON.stringify(content, null, 2)}\n`)
}
