import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nthCall } from '../calls.ts'
import { selfTimes, type SelfTimes } from '../measure/cpu-profile.ts'
import { cpuLine, forward, noVerdict, post, warmUpOf, type Drain, type Drained } from '../measure/drain.ts'
import { startReceiver } from '../receiver.ts'
import { deploy } from '../rig.ts'
import type { Workload } from './workload.ts'

const users = 10_000
const inFlight = 64
const intervalMicros = 200
/** Of our files, those that take at least so much of a delivery. */
const minFileMicros = 0.1

interface Profiled {
  run: Drained
  times: SelfTimes
  /** Calls that were delivered in the time that was looked at. */
  deliveries: number
}

/** Where each microsecond of a delivery goes. Under the profiler all of it is slower than it is. */
export const profile: Workload = {
  name: 'profile',
  summary:
    'a CPU profile of the hot path: self time of a delivery by area, with either HTTP client, beside that of bare undici',
  sizes: { calls: 300_000 },
  quick: { calls: 50_000 },
  async run(servers, { calls }) {
    const deployment = await deploy(servers)
    const receiver = startReceiver()
    const { port } = await receiver.reported('listening')
    const url = `http://127.0.0.1:${port}/hook`
    await deployment.destination('crm', 'shop', [url])
    await deployment.produce(calls!, (index) => nthCall(index, users), 'backlog')
    await deployment.close()
    const drain: Drain = { servers, receiver, requests: calls!, warmUp: warmUpOf(calls!) }
    const deliveries = calls! - warmUpOf(calls!)
    const ours = await profiled(drain, deliveries, (run) => forward(run, deployment.env))
    const switched = {
      ...deployment.env,
      WEBHOOK_CLIENT: 'undici',
      GROUP_ID: `${deployment.env.GROUP_ID}-undici`,
    }
    const onUndici = await profiled(drain, deliveries, (run) => forward(run, switched))
    const bare = await profiled(drain, deliveries, (run) =>
      post(run, { by: 'request', urls: [url], users, inFlight, connections: inFlight }),
    )
    await receiver.end()
    return {
      rows: [
        { what: 'Postrider, profiled', unit: 'calls/s', value: ours.run.perSecond },
        { what: 'Postrider on undici, profiled', unit: 'calls/s', value: onUndici.run.perSecond },
        {
          what: `undici request, ${inFlight} in flight, profiled`,
          unit: 'calls/s',
          value: bare.run.perSecond,
        },
      ],
      ratio: null,
      goal: null,
      verdict: noVerdict([ours, onUndici, bare].map(({ run }) => run.use)),
      text: [
        ...table(
          'self time of a delivery, µs',
          ['Postrider', 'on undici', 'undici'],
          [ours, onUndici, bare].map(areas),
        ),
        ...table('of that in our own files, µs', ['Postrider', 'on undici'], [ours, onUndici].map(files)),
        cpuLine('Postrider', ours.run.use),
        cpuLine('Postrider on undici', onUndici.run.use),
        cpuLine('undici', bare.run.use),
      ],
      detail: { calls, ours, onUndici, bare },
    }
  },
}

async function profiled(
  drain: Drain,
  deliveries: number,
  start: (run: Drain) => Promise<Drained>,
): Promise<Profiled> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-profile-'))
  try {
    const flags = ['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-interval=${intervalMicros}`]
    const run = await start({ ...drain, flags })
    const [file] = (await readdir(folder)).filter((name) => name.endsWith('.cpuprofile'))
    if (!file) throw new Error('the measured process wrote no profile')
    return { run, deliveries, times: await selfTimes(join(folder, file), run.from, run.to) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const perDelivery = (times: Record<string, number>, deliveries: number) =>
  Object.fromEntries(Object.entries(times).map(([name, micros]) => [name, micros / deliveries]))

const areas = ({ times, deliveries }: Profiled) =>
  perDelivery({ ...times.areas, 'in all': times.totalMicros }, deliveries)

function files({ times, deliveries }: Profiled): Record<string, number> {
  const all = Object.entries(perDelivery(times.files, deliveries))
  return Object.fromEntries(all.filter(([, micros]) => micros >= minFileMicros))
}

/** The largest of the first column come first. */
function table(title: string, heads: string[], columns: Record<string, number>[]): string[] {
  const names = [...new Set(columns.flatMap((column) => Object.keys(column)))]
  names.sort((a, b) => (columns[0]![b] ?? 0) - (columns[0]![a] ?? 0))
  const line = (name: string, cells: string[]) =>
    `  ${name.padEnd(48)}${cells.map((cell) => cell.padStart(11)).join('')}`
  return [
    line(title, heads),
    ...names.map((name) =>
      line(
        `  ${name}`,
        columns.map((column) => (column[name] === undefined ? '' : column[name].toFixed(2))),
      ),
    ),
  ]
}
