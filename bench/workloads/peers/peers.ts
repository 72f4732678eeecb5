import { nthCall } from '../../calls.ts'
import { cpuLine, drain, forward, noVerdict, type Drain, type Drained } from '../../measure/drain.ts'
import { medianBy } from '../../measure/figures.ts'
import { availablePeers, type Form, type Peer, type PeerOrder } from '../../peers/peers.ts'
import { startReceiver } from '../../receiver.ts'
import { deploy, type Servers } from '../../rig.ts'
import { atLeast, type Goal, type Row, type Workload } from '../workload.ts'
import { makeBacklog } from './backlog.ts'
import { besideHanging } from './hanging.ts'
import { makesSameRequests } from './same-requests.ts'

const users = 10_000
const forms: readonly Form[] = ['avro', 'json']
const tried = [8, 16, 64, 256, 1_024]
const goals: Record<string, number> = { Bento: 4, 'Parallel Consumer': 3.5 }

/** How a peer is run. */
interface Setting {
  form: Form
  inFlight: number
}

/** Other programs that make POSTs out of records, on the same topic, core and receiver. */
export const peers: Workload = {
  name: 'peers',
  summary:
    'Kafka → signed POST by Bento and by the Parallel Consumer, each at its best; one of ten URLs hangs',
  sizes: { calls: 200_000, rounds: 3, seconds: 8 },
  quick: { calls: 20_000, rounds: 1, seconds: 3 },
  async run(servers, { calls, rounds, seconds }) {
    const found = await availablePeers()
    for (const peer of found) for (const form of forms) await makesSameRequests(servers, peer, form)
    const { ours, theirs, all } = await drained(servers, found, calls!, rounds!)
    const rows: Row[] = [rowOf('Postrider', ours)]
    const reached: Goal[] = []
    const text = [cpuLine('Postrider', ours.use)]
    for (const [peer, { setting, runs }] of theirs) {
      const median = medianBy(runs, ({ perSecond }) => perSecond)
      rows.push(rowOf(`${peer.name}, ${nameOf(setting)}`, median))
      reached.push(atLeast(`Postrider to ${peer.name}`, ours.perSecond / median.perSecond, goals[peer.name]!))
      text.push(cpuLine(peer.name, median.use))
    }
    const hanging = await besideHanging(servers, found, seconds!)
    rows.push(...hanging.rows)
    const verdict = noVerdict([...all.map(({ use }) => use), ...hanging.uses])
    return {
      rows,
      ratio: null,
      goal: null,
      goals: reached,
      verdict,
      text: [...text, ...hanging.text, ...all.map(lineOf)],
      detail: { calls, users, all, hanging },
    }
  },
}

interface Measured extends Drained {
  by: string
  setting: Setting | null
}

/** By peer: its best setting, and the rounds with it. */
type Bests = Map<Peer, { setting: Setting; runs: Drained[] }>

/** One destination: Postrider and each peer, at the best of what is tried first, work off the same calls in turns. */
async function drained(servers: Servers, found: readonly Peer[], calls: number, rounds: number) {
  const deployment = await deploy(servers)
  const receiver = startReceiver()
  const { port } = await receiver.reported('listening')
  const url = `http://127.0.0.1:${port}/hook`
  await deployment.destination('crm', 'shop', [url])
  const backlog = await makeBacklog(deployment, () => url)
  await backlog.produce(forms, calls, (index) => nthCall(index, users))
  await deployment.close()
  const { env } = deployment
  const all: Measured[] = []
  const group = () => `${env.GROUP_ID}.${all.length}`
  const measure = async (peer: Peer, setting: Setting, run: Drain): Promise<Drained> => {
    const topic = backlog.topic(setting.form)
    const order: PeerOrder = { env, topic, groupId: group(), urls: [url], ...setting }
    const measured = await drain(run, () => peer.start(order))
    all.push({ by: peer.name, setting, ...measured })
    return measured
  }
  const some = Math.floor(calls / 3)
  // What compiles as it runs needs its time: the first half is not counted.
  const trial: Drain = { servers, receiver, requests: some, warmUp: Math.floor(some / 2) }
  // A tail says nothing, and a peer that fails would never come to its end.
  const whole: Drain = {
    servers,
    receiver,
    requests: Math.floor(calls * 0.95),
    warmUp: Math.floor(calls / 2),
  }
  const theirs: Bests = new Map()
  for (const peer of found) {
    const trials: { setting: Setting; perSecond: number }[] = []
    for (const form of forms)
      for (const inFlight of tried) {
        const setting = { form, inFlight }
        trials.push({ setting, perSecond: (await measure(peer, setting, trial)).perSecond })
      }
    const { setting } = trials.reduce((best, each) => (each.perSecond > best.perSecond ? each : best))
    theirs.set(peer, { setting, runs: [] })
  }
  const own: Drained[] = []
  for (let round = 0; round < rounds; round++) {
    const measured = await forward(whole, { ...env, GROUP_ID: group() })
    own.push(measured)
    all.push({ by: 'Postrider', setting: null, ...measured })
    for (const [peer, { setting, runs }] of theirs) runs.push(await measure(peer, setting, whole))
  }
  await receiver.end()
  return { ours: medianBy(own, ({ perSecond }) => perSecond), theirs, all }
}

const nameOf = ({ form, inFlight }: Setting): string =>
  `${form === 'avro' ? 'from Avro' : 'from bodies'}, ${inFlight} in flight`

/** Each run, trials too: how much its settings do for a peer. */
const lineOf = ({ by, setting, perSecond, cpuMicros }: Measured): string =>
  `  ${[by, ...(setting ? [nameOf(setting)] : [])].join(', ')}: ${perSecond} calls/s, ${cpuMicros ?? '–'} µs each`

const rowOf = (what: string, { perSecond, cpuMicros, use }: Drained): Row => ({
  what: cpuMicros === null ? what : `${what}, ${cpuMicros} µs each`,
  unit: 'calls/s',
  value: perSecond,
  ...(use.shares.measured !== undefined && { cpu: use.shares.measured }),
})
