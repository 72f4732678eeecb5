import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { attemptBuckets, type DestinationTally, type Tally } from '../../../src/core/ledger/tally.ts'
import { deliveryEvent, type DeliveryEvent } from '../../../src/core/ledger/delivery-event.ts'
import { noTally } from '../../../src/core/ledger/result-codes.ts'
import { p99Of } from '../../measure/figures.ts'
import { deploy, measuredCore, type Deployment, type Servers } from '../../rig.ts'
import { atLeast, atMost, type Workload } from '../workload.ts'
import { startConsole } from './console-process.ts'

const perTally = 500
const destinations = 20
const partitions = 12
/** Every Nth attempt fails, and is listed. */
const failsEvery = 100
/** The time that the ledger is about. */
const spanMs = 86_400_000
/** Deliveries a second of one forwarder at full load (docs/performance.md). */
const fullLoad = 10_000
const questions = 300

/** How the console folds a ledger that it has not seen, and how it answers over it. */
export const statistics: Workload = {
  name: 'statistics',
  summary:
    'a console that folds the tallies of 10,000,000 deliveries, of which 1 % failed, and its answers over them',
  sizes: { calls: 10_000_000 },
  quick: { calls: 200_000 },
  run: async (servers: Servers, { calls: deliveries = 10_000_000 }) => {
    const folder = await mkdtemp(join(tmpdir(), 'postrider-bench-'))
    const deployment = await deploy(servers)
    try {
      for (let index = 0; index < destinations; index++)
        await deployment.destination(`d${index}`, 'shop', ['http://127.0.0.1:9/a', 'http://127.0.0.1:9/b'])
      await writeLedger(deployment, deliveries)
      await deployment.close()
      const env = { ...deployment.env, STORE_PATH: folder }
      const { seconds, cpuSeconds, peakMb, p99 } = await fold(env)
      const perSecond = Math.round(deliveries / seconds)
      const file = `${deployment.topics.deliveries}.statistics.sqlite`
      const fileMb = Math.round((await stat(join(folder, file))).size / 1_000_000)
      return {
        rows: [
          { what: 'folded', unit: 'deliveries/s', value: perSecond, cpu: cpuSeconds / seconds },
          { what: 'peak memory', unit: 'MB', value: peakMb },
          { what: 'file', unit: 'MB', value: fileMb },
          ...Object.entries(p99).map(([path, ms]) => ({ what: `p99 of ${path}`, unit: 'ms', value: ms })),
        ],
        ratio: null,
        goal: null,
        goals: [
          atLeast('folded, times the full load', perSecond / fullLoad, 10),
          atMost('peak memory, MB', peakMb, 300),
          ...Object.entries(p99).map(([path, ms]) => atMost(`p99 of ${path}, ms`, ms, 100)),
        ],
        verdict: null,
        detail: { deliveries, seconds, cpuSeconds, peakMb, fileMb, p99 },
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  },
}

export async function writeLedger(deployment: Deployment, deliveries: number): Promise<void> {
  const { codecs, topics, config } = deployment
  await codecs.deliveries.ready()
  const tallies = Math.ceil(deliveries / perTally)
  const failures = Math.floor(deliveries / failsEvery)
  const perRound = 1 + perTally / failsEvery
  const from = Date.now() - spanMs
  const nth = (index: number) => {
    const round = Math.floor(index / perRound)
    const at = from + Math.floor((round / tallies) * spanMs)
    const event =
      index % perRound === perRound - 1
        ? nthTally(config.groupId, topics.calls, round, at)
        : failed(index, at)
    const key = event.tally ? `${config.groupId}/${round % partitions}` : event.messageId!
    return { key, value: codecs.deliveries.encode(event) }
  }
  await deployment.append(topics.deliveries, tallies + failures, nth, 'ledger')
}

function nthTally(group: string, topic: string, index: number, at: number): DeliveryEvent {
  const [partition, number] = [index % partitions, Math.floor(index / partitions)]
  const start = number * perTally
  const tally: Tally = {
    id: `t${number}`,
    predecessor: number === 0 ? null : `t${number - 1}`,
    ...{ group, start, position: start + perTally, before: [], finished: [0, perTally], lost: [], held: [] },
    ...{ records: perTally, owner: 'm/1', earlier: [] },
    counts: Array.from({ length: destinations }, (_, which) => counted(`d${which}`)),
  }
  return deliveryEvent('tally', at, { topic, partition, tally })
}

function counted(destinationId: string): DestinationTally {
  const delivered = perTally / destinations
  const durations = Array.from({ length: attemptBuckets.length + 1 }, (_, bucket) => (bucket < 5 ? 5 : 0))
  const attempts = (urlId: string) => ({
    urlId,
    outcomes: [{ outcome: 'success', count: delivered }],
    durations,
  })
  return {
    ...noTally(destinationId),
    delivered,
    skipReasons: [{ reason: 'not_chosen', count: 0 }],
    endpoints: [attempts('u1'), attempts('u2')],
  }
}

const failed = (index: number, at: number): DeliveryEvent =>
  deliveryEvent('attempt_failed', at, {
    messageId: `0f7c1d2e-aaaa-4bbb-8ccc-${String(index).padStart(12, '0')}`,
    sourceId: 'shop',
    destinationId: `d${index % destinations}`,
    deliveryId: `0f7c1d2e-aaaa-4bbb-8ccc-${String(index).padStart(12, '0')}:d${index % destinations}`,
    ...{ topic: 'calls', partition: index % partitions, firstOffset: index, urlId: 'u1', attempt: 1 },
    ...{ reason: index % 3 === 0 ? 'timeout' : 'status_5xx', status: index % 3 === 0 ? null : 503 },
    durationMs: 12.5,
  })

/** The console as users run it, from its start until it has folded everything, and then asked. */
async function fold(env: Record<string, string>) {
  const began = performance.now()
  const console = startConsole(env, measuredCore)
  try {
    while (((await console.ask<{ asOf: string | null }>('/system'))?.asOf ?? null) === null)
      await new Promise((resolve) => setTimeout(resolve, 100))
    const seconds = (performance.now() - began) / 1_000
    const cpuSeconds = await cpuOf(console.pid)
    const p99: Record<string, number> = {}
    for (const path of [
      '/overview',
      '/overview/destinations?window=24h&hours=true',
      '/destinations/d7/stats?window=1h&step=1m',
      '/destinations/d7/stats?window=1d&step=1m',
      '/attempts',
      // None is that: as much as one page looks through.
      '/attempts?outcome=timeout&status=503&limit=200',
    ]) {
      const times: number[] = []
      for (let index = 0; index < questions; index++) {
        const asked = performance.now()
        if ((await console.ask(path)) === null) throw new Error(`${path} was refused`)
        times.push(performance.now() - asked)
      }
      p99[path] = p99Of(times)
    }
    return { seconds, cpuSeconds, peakMb: await console.peakMb(), p99 }
  } finally {
    await console.end()
  }
}

async function cpuOf(pid: number): Promise<number> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // utime and stime, in hundredths of a second.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / 100
}
