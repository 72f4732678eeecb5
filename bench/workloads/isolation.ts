import { retriesOf, type RetryAccount } from '../measure/accounts.ts'
import { nthCall } from '../calls.ts'
import type { CpuUse } from '../measure/cpu.ts'
import { cpuLine, noVerdict, warmUpOf } from '../measure/drain.ts'
import type { Behaviour } from '../children/endpoints.ts'
import { mean } from '../measure/figures.ts'
import { paced, type Paced } from '../measure/paced.ts'
import { deployMany, type Servers } from '../rig.ts'
import { sideBySide, type Side, type SideResult } from '../measure/side-by-side.ts'
import { atLeast, atMost, type Goal, type Row, type Workload } from './workload.ts'

const endpoints = 10
/** The last one may fail; the others are counted, in the reference too. */
const failing = endpoints - 1
const counted = Array.from({ length: failing }, (_, index) => index)
type Bad = Exclude<Behaviour, 'ok'>
const variants: Bad[] = ['hang', '503', 'drip', 'reset']
const users = 10_000
const warmUpS = 5
const onsetS = 10
/**
 * Of what ten healthy ones take from a backlog: at full load every queue is full, and a time says nothing. Nor does it at
 * half load, which a slow moment of the machine makes a full one.
 */
const load = 0.25

interface Beside {
  /** Of the nine, of each side. */
  bad: SideResult
  healthy: SideResult
  use: CpuUse
  /** Of the failing one. */
  failing: { sent: number; retries: RetryAccount }
}

/** Ten endpoints at equal rate, one of them bad in one way after the other. */
export const isolation: Workload = {
  name: 'isolation',
  summary:
    'ten endpoints at equal rate, one hangs, answers 503, drips or resets; reference: all ten healthy, nine counted',
  sizes: { calls: 300_000, rounds: 5, seconds: 20 },
  quick: { calls: 50_000, rounds: 1, seconds: 5 },
  async run(servers, { calls, rounds, seconds }) {
    const beside = {} as Record<Bad, Beside[]>
    for (const variant of variants) {
      beside[variant] = []
      for (let round = 0; round < rounds!; round++)
        beside[variant].push(await besideHealthy(servers, calls!, variant, round % 2 === 1))
    }
    const all = Object.values(beside).flat()
    // Ten healthy ones had half of the core, and nine of them were counted.
    const full = (mean(all.map(({ healthy }) => healthy.perSecond)) * 2 * endpoints) / failing
    const rate = Math.round(full * load)
    const pace = { rate, warmUpS, seconds: seconds!, weights: Array<number>(endpoints).fill(1), counted }
    // What the machine itself does changes within minutes: each bad one has a reference before and behind it.
    const healthy = () => paced(servers, { ...pace, onsetS: 0 })
    const references = [await healthy()]
    const rows: Row[] = []
    const goals: Goal[] = []
    const text = [cpuLine('healthy, at the rate', references[0]!.use)]
    const paces = {} as Record<Bad, Paced>
    for (const variant of variants) {
      const behaviours: Behaviour[] = [...counted.map((): Behaviour => 'ok'), variant]
      const at = await paced(servers, { ...pace, onsetS, behaviours })
      paces[variant] = at
      references.push(await healthy())
      const around = references.slice(-2).map(({ lasting }) => lasting.p99)
      const pairs = beside[variant]
      const ofBad = Math.round(mean(pairs.map(({ bad }) => bad.perSecond)))
      const ofHealthy = Math.round(mean(pairs.map(({ healthy }) => healthy.perSecond)))
      rows.push(
        { what: `${variant}: the nine, from a backlog`, unit: 'calls/s', value: ofBad },
        { what: `${variant}: beside it, all healthy`, unit: 'calls/s', value: ofHealthy },
        {
          what: `${variant}: p99 at ${rate.toLocaleString('en')} calls/s`,
          unit: 'ms',
          value: at.lasting.p99,
        },
        { what: `${variant}: all healthy, before and after it`, unit: 'ms', value: mean(around) },
        { what: `${variant}: p99 in the first ${onsetS} s of it`, unit: 'ms', value: at.onset!.p99 },
        { what: `${variant}: longest in these`, unit: 'ms', value: at.onset!.max },
      )
      const lost = [...pairs.map((pair) => pair.failing), at.failing!].reduce(
        (sum, { sent, retries: { calls: kept } }) => sum + Math.max(0, sent - kept),
        0,
      )
      goals.push(
        atLeast(
          `${variant}: throughput of the nine, in the worst of ${rounds} runs`,
          Math.min(...pairs.map(ratioOf)),
          0.97,
        ),
        atMost(`${variant}: their p99, × that of the reference`, at.lasting.p99 / mean(around), 1.3),
        atMost(`${variant}: calls neither in a tier nor dead letters`, lost, 0),
        atMost(`${variant}: calls of the nine that did not come`, at.missing, 0),
      )
      text.push(
        `  ${variant}, from a backlog: ${pairs.map(besideLine).join('; ')}`,
        ...pairs.map(({ use }) => cpuLine(`${variant}, backlog`, use)),
        cpuLine(`${variant}, at the rate`, at.use),
      )
    }
    const uses = [...references, ...all, ...Object.values(paces)].map(({ use }) => use)
    return {
      rows,
      ratio: null,
      goal: null,
      goals,
      verdict: noVerdict(uses),
      text,
      detail: { calls, rate, beside, references, paces },
    }
  },
}

const ratioOf = ({ bad, healthy }: Beside): number => bad.perSecond / healthy.perSecond

function besideLine({ bad, healthy }: Beside): string {
  const cpu =
    bad.cpuMicros === null ? '' : ` (CPU for one of the nine ${bad.cpuMicros} µs beside ${healthy.cpuMicros})`
  return `${bad.perSecond} beside ${healthy.perSecond} calls/s${cpu}`
}

/** A backlog of calls to the ten in turns, the last of them bad from the start; beside it the same, all healthy. */
async function besideHealthy(
  servers: Servers,
  calls: number,
  behaviour: Behaviour,
  healthyFirst: boolean,
): Promise<Beside> {
  const sides: Side[] = []
  for (const name of healthyFirst ? ['ok', behaviour] : [behaviour, 'ok']) {
    const { deployment, receiver } = await deployMany(servers, endpoints)
    await deployment.produce(calls, (index) => nthCall(index, users, `source-${index % endpoints}`), name)
    await receiver.ask({ behave: [...counted.map(() => 'ok'), name] }, 'behaving')
    sides.push({ name, deployment, receiver })
  }
  const sent = Math.floor(calls / endpoints)
  const expect = sent * failing
  const [first, second] = sides as [Side, Side]
  const { sides: results, use } = await sideBySide(servers, [first, second], counted, {
    expect,
    warmUp: warmUpOf(expect),
  })
  const [bad, healthy] = healthyFirst ? [1, 0] : [0, 1]
  const account = await retriesOf(sides[bad]!.deployment, `destination-${failing}`)
  for (const { deployment, receiver } of sides) await Promise.all([receiver.end(), deployment.close()])
  return { bad: results[bad]!, healthy: results[healthy]!, use, failing: { sent, retries: account } }
}
