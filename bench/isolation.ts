import { handedOver, untilFinished, type HandedOver } from './accounts.ts'
import { nthCall } from './calls.ts'
import { Child } from './child.ts'
import { watchCpu, type CpuUse } from './cpu.ts'
import { cpuLine, noVerdict, warmUpOf } from './drain.ts'
import type { Behaviour } from './endpoints.ts'
import { paced, type Paced } from './paced.ts'
import { deployMany, measuredCore, otherCore, type Servers } from './rig.ts'
import { atLeast, atMost, type Goal, type Row, type Workload } from './workload.ts'

const endpoints = 10
/** The last one may fail; the others are counted, in the reference too. */
const failing = endpoints - 1
const counted = Array.from({ length: failing }, (_, index) => index)
const variants: Behaviour[] = ['hang', '503', 'drip', 'reset']
const users = 10_000
const warmUpS = 5
const onsetS = 10
/** Of what all ten take from a backlog: at full load every queue is full, and a time says nothing. */
const load = 0.5

interface Backlog {
  /** Of the nine. */
  perSecond: number
  use: CpuUse
  /** Of the failing one. */
  failing: { sent: number; handedOver: HandedOver } | null
}

/** Ten endpoints at equal rate, one of them bad in one way after the other. */
export const isolation: Workload = {
  name: 'isolation',
  summary:
    'ten endpoints at equal rate, one hangs, answers 503, drips or resets; reference: all ten healthy, nine counted',
  sizes: { calls: 400_000, seconds: 20 },
  quick: { calls: 50_000, seconds: 5 },
  async run(servers, { calls, seconds }) {
    const healthy = await backlog(servers, calls!, 'ok')
    const rate = Math.round((healthy.perSecond / failing) * endpoints * load)
    const pace = { rate, warmUpS, seconds: seconds!, weights: Array<number>(endpoints).fill(1), counted }
    const reference = await paced(servers, { ...pace, onsetS: 0 })
    const rows: Row[] = [
      { what: 'all healthy: the nine, from a backlog', unit: 'calls/s', value: healthy.perSecond },
      {
        what: `all healthy: p99 at ${rate.toLocaleString('en')} calls/s`,
        unit: 'ms',
        value: reference.lasting.p99,
      },
    ]
    const goals: Goal[] = []
    const text = [cpuLine('healthy, backlog', healthy.use), cpuLine('healthy, at the rate', reference.use)]
    const runs: Record<string, { worked: Backlog; at: Paced }> = {}
    for (const variant of variants) {
      const worked = await backlog(servers, calls!, variant)
      const behaviours: Behaviour[] = [...counted.map((): Behaviour => 'ok'), variant]
      const at = await paced(servers, { ...pace, onsetS, behaviours })
      runs[variant] = { worked, at }
      rows.push(
        { what: `${variant}: the nine, from a backlog`, unit: 'calls/s', value: worked.perSecond },
        { what: `${variant}: p99 at the rate`, unit: 'ms', value: at.lasting.p99 },
        { what: `${variant}: p99 in the first ${onsetS} s of it`, unit: 'ms', value: at.onset!.p99 },
        { what: `${variant}: longest in these`, unit: 'ms', value: at.onset!.most },
      )
      const lost = [worked.failing!, at.failing!].reduce(
        (sum, { sent, handedOver: { calls: kept } }) => sum + Math.max(0, sent - kept),
        0,
      )
      goals.push(
        atLeast(`${variant}: throughput of the nine`, worked.perSecond / healthy.perSecond, 0.95),
        atMost(`${variant}: their p99, × that of the reference`, at.lasting.p99 / reference.lasting.p99, 1.2),
        atMost(`${variant}: calls neither in a tier nor dead letters`, lost, 0),
        atMost(`${variant}: calls of the nine that did not come`, at.missing, 0),
      )
      text.push(cpuLine(`${variant}, backlog`, worked.use), cpuLine(`${variant}, at the rate`, at.use))
    }
    const uses = [healthy.use, reference.use]
    for (const { worked, at } of Object.values(runs)) uses.push(worked.use, at.use)
    return {
      rows,
      ratio: null,
      goal: null,
      goals,
      verdict: noVerdict(uses),
      text,
      detail: { calls, rate, healthy, reference, runs },
    }
  },
}

/** A backlog of calls to the ten in turns, with the last one as it is from the start. */
async function backlog(servers: Servers, calls: number, behaviour: Behaviour): Promise<Backlog> {
  const { deployment, receiver } = await deployMany(servers, endpoints)
  await deployment.produce(calls, (index) => nthCall(index, users, `source-${index % endpoints}`), 'backlog')
  await receiver.ask({ behave: [...counted.map(() => 'ok'), behaviour] }, 'behaving')
  const expect = Math.floor(calls / endpoints) * failing
  await receiver.ask({ expect, warmUp: warmUpOf(expect), counted }, 'ready')
  const warm = receiver.told('warm')
  const done = receiver.told('done')
  const child = new Child('./forwarding.ts', { core: measuredCore, env: deployment.env })
  await warm
  const watch = await watchCpu(
    { forwarder: child.pid, receiver: receiver.pid, kafka: servers.brokerPid, bench: process.pid },
    otherCore,
  )
  const { elapsedMs, measured } = await done
  const use = await watch.end()
  const sent = Math.floor(calls / endpoints)
  let failed: Backlog['failing'] = null
  if (behaviour !== 'ok') {
    await untilFinished(deployment)
    failed = { sent, handedOver: await handedOver(deployment, `destination-${failing}`) }
  }
  await Promise.all([child.end(), receiver.end(), deployment.close()])
  return { perSecond: Math.round((measured! / elapsedMs!) * 1_000), use, failing: failed }
}
