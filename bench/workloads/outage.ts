import { setTimeout as delay } from 'node:timers/promises'
import { readRange } from '../../src/adapters/kafka/read/read-range.ts'
import { countOf, isRun } from '../../src/core/delivery/deferred-run.ts'
import { silentLog as log } from '../../test/support/silent-log.ts'
import type { Behaviour } from '../children/endpoints.ts'
import { Child } from '../child.ts'
import { monotonicMs } from '../measure/clock.ts'
import { watchCpu, type CpuUse } from '../measure/cpu.ts'
import { cpuLine, noVerdict } from '../measure/drain.ts'
import { round2 } from '../measure/figures.ts'
import { availablePeers, type Peer } from '../peers/peers.ts'
import { deployMany, measuredCore, otherCore, type Deployment, type Servers } from '../rig.ts'
import { makeBacklog } from './peers/backlog.ts'
import { atMost, type Goal, type Row, type Workload } from './workload.ts'

const endpoints = 10
const down = endpoints - 1
const nine = Array.from({ length: down }, (_, index) => index)
const rate = 2_000
const users = 10_000
const beforeS = 15
/** Of these the first are not looked at: compilers and limits find their level. */
const settlingS = 8
/** What the outage stands for, in seconds, and the tiers of a deployment that says nothing of them. */
const fourHours = 4 * 3_600
const tiers = [10, 30, 60, 300, 900, 1_800, 3_600, 7_200]
/** How often a peer tries again what fails: twice an hour. */
const peerRetry = 1_800
const peerInFlight = 64
const givenUpAfterS = 120
/** The last of the nine's calls may come so long after it was due, in ms. */
const missingAfterMs = 30_000
const pollMs = 250

interface Phase {
  /** Of the nine, from when a call was produced until its request had come, in ms. */
  p50: number
  p99: number
  max: number
  use: CpuUse
}

interface Outage {
  before: Phase
  during: Phase
  after: Phase
  /** Calls to the nine that did not come at all. */
  missing: number
  /** Calls to the endpoint that was down while it was. */
  putOff: number
  /** Of all calls to it; null where the program has no such thing. */
  deadLetters: number | null
  /** From its return until the last call that came to it during the outage, in s; null: it did not come. */
  lastAfterS: number | null
  /** Written to topics beside that of the calls for each call that was put off. */
  bytesEach: number
  /** Of it, in the tiers. */
  tierBytesEach: number
  /** Null where there are no such records. */
  waited: Waited | null
}

/** What lay in the tiers, for each call that was put off. */
interface Waited {
  /** Times that it was put off without an attempt, in records of many calls, and the bytes of its part of these records. */
  together: { times: number; bytes: number }
  /** Records of its own, from its first attempt on, and their bytes. */
  alone: { times: number; bytes: number }
}

/** The outage that customers have: one of ten endpoints is away for four hours. */
export const outage: Workload = {
  name: 'outage',
  summary:
    'ten endpoints, one answers 503 for four hours (on a clock that is scaled to these seconds), at 2,000 calls/s',
  sizes: { seconds: 120 },
  quick: { seconds: 20 },
  async run(servers, { seconds }) {
    const programs: (Peer | null)[] = [null, ...(await availablePeers())]
    const rows: Row[] = []
    const text: string[] = []
    const uses: CpuUse[] = []
    const detail: Record<string, Outage> = {}
    const goals: Goal[] = []
    for (const peer of programs) {
      const what = peer?.name ?? 'Postrider'
      const found = await through(servers, peer, seconds!)
      detail[what] = found
      rows.push(...rowsOf(what, found))
      const phases = { before: found.before, during: found.during, after: found.after }
      for (const [name, { use }] of Object.entries(phases)) {
        text.push(cpuLine(`${what}, ${name}`, use))
        uses.push(use)
      }
      if (peer !== null) continue
      goals.push(
        atMost('bytes in the tiers for a call put off', found.tierBytesEach, 100),
        atMost('p99 of the nine, × that of before', round2(found.during.p99 / found.before.p99), 1.3),
        atMost('calls of the nine that did not come', found.missing, 0),
        atMost('calls that came neither there nor to the dead letters', found.lastAfterS === null ? 1 : 0, 0),
      )
    }
    return {
      rows,
      ratio: null,
      goal: null,
      goals,
      verdict: noVerdict(uses),
      text,
      detail: { seconds, rate, ...detail },
    }
  },
}

function rowsOf(what: string, found: Outage): Row[] {
  const { before, during, after, missing, putOff, deadLetters, lastAfterS } = found
  const { bytesEach, tierBytesEach, waited } = found
  const phases = { before, during, after }
  return [
    ...Object.entries(phases).flatMap(([name, { p99, use }]): Row[] => [
      {
        what: `${what}: p99 of the nine, ${name}`,
        unit: 'ms',
        value: p99,
        ...(use.shares.measured !== undefined && { cpu: use.shares.measured }),
      },
    ]),
    { what: `${what}: calls of the nine that did not come`, unit: '', value: missing },
    { what: `${what}: calls put off`, unit: '', value: putOff },
    ...(deadLetters === null ? [] : [{ what: `${what}: dead letters`, unit: '', value: deadLetters }]),
    { what: `${what}: written for each, in the tiers`, unit: 'bytes', value: tierBytesEach },
    ...(waited === null
      ? []
      : Object.entries({ 'put off with others': waited.together, 'after an attempt': waited.alone }).flatMap(
          ([how, { times, bytes }]): Row[] => [
            { what: `${what}: of it, ${how}`, unit: 'bytes', value: bytes },
            { what: `${what}: ${how}`, unit: 'times', value: times },
          ],
        )),
    { what: `${what}: written for each, in all topics`, unit: 'bytes', value: bytesEach },
    { what: `${what}: the last, after its return`, unit: 's', value: lastAfterS ?? Infinity },
  ]
}

async function through(servers: Servers, peer: Peer | null, seconds: number): Promise<Outage> {
  const scale = seconds / fourHours
  const scaled = (of: number) => `${Math.max(1, Math.round(of * scale * 1_000))}ms`
  const { deployment, receiver, urls } = await deployMany(servers, endpoints, {
    RETRY_TIERS: tiers.map(scaled).join(),
    RETRY_WINDOW: scaled(fourHours),
  })
  const afterS = Math.max(20, seconds / 2)
  const child = await start(deployment, peer, Object.values(urls), peerRetry * scale * 1_000)
  const pacer = new Child('pacer.ts', {
    core: otherCore,
    env: deployment.env,
    flags: ['--max-semi-space-size=1'],
  })
  await pacer.reported('listening')
  const pacing = pacer.reported('pacing')
  const paced = pacer.reported('paced')
  const weights = Array<number>(endpoints).fill(1)
  pacer.send({ rate, seconds: beforeS + seconds + afterS, users, weights, silent: [] })
  const from = (await pacing).from!
  const [goesAt, returnsAt, endsAt] = [beforeS, beforeS + seconds, beforeS + seconds + afterS].map(
    (after) => from + after * 1_000,
  ) as [number, number, number]
  const behave = (behaviour: Behaviour) =>
    receiver.ask({ behave: [...nine.map(() => 'ok'), behaviour] }, 'behaving')
  const pids = { measured: child.pid, receiver: receiver.pid, sender: pacer.pid, kafka: servers.brokerPid }
  const useOf = async (begins: number, ends: number): Promise<CpuUse> => {
    await until(begins)
    const watch = await watchCpu(pids, otherCore)
    await until(ends)
    return watch.end()
  }
  /** Of the calls that were due then, once all have come: the slowest of them come after the end of their phase. */
  const phase = async (begins: number, ends: number, use: CpuUse): Promise<Phase> => {
    const asked = { from: begins, to: ends, of: nine, since: 'produced' }
    const { p50, p99, max } = await receiver.ask(asked, 'quantiles')
    const of = (value: number | undefined) => round2(value ?? Infinity)
    return { p50: of(p50), p99: of(p99), max: of(max), use }
  }
  const settledAt = from + settlingS * 1_000
  const useBefore = await useOf(settledAt, goesAt)
  const bytesBefore = await servers.topicBytes()
  await behave('503')
  const useDuring = await useOf(goesAt, returnsAt)
  await behave('ok')
  const afterwards = useOf(returnsAt, endsAt)
  const lastAfterS = await untilLast(deployment, receiver, { goesAt, returnsAt, isPeer: peer !== null })
  const useAfter = await afterwards
  const reported = (await paced) as unknown as { sent: number[]; failed: number }
  if (reported.failed > 0) throw new Error(`${reported.failed} batches could not be produced`)
  const missing = await untilNineCame(receiver, reported.sent, endsAt)
  const grown = grownBy(bytesBefore, await servers.topicBytes())
  const { topics } = deployment
  const putOff = Math.round((rate / endpoints) * seconds)
  const isTier = (topic: string) => topic.startsWith(topics.retry('')) || topic.endsWith('.retry')
  const own = [...grown].filter(([topic]) => topic.startsWith(deployment.config.topicPrefix))
  const sum = (isCounted: (topic: string) => boolean) =>
    own.reduce((bytes, [topic, each]) => bytes + (isCounted(topic) ? each : 0), 0)
  const result: Outage = {
    before: await phase(settledAt, goesAt, useBefore),
    during: await phase(goesAt, returnsAt, useDuring),
    after: await phase(returnsAt, endsAt, useAfter),
    ...{ missing, putOff, lastAfterS },
    deadLetters: peer === null ? await recordsIn(deployment, topics.deadLetters) : null,
    bytesEach: Math.round(sum((topic) => topic !== topics.calls) / putOff),
    tierBytesEach: Math.round(sum(isTier) / putOff),
    waited: peer === null ? await waitedIn(deployment, putOff) : null,
  }
  await Promise.all([child.end(), pacer.end(), receiver.end(), deployment.close()])
  return result
}

async function start(
  deployment: Deployment,
  peer: Peer | null,
  urls: string[],
  retryMs: number,
): Promise<Child> {
  const { env, topics } = deployment
  if (peer !== null) {
    await makeBacklog(deployment, () => '', ['retry'])
    const groupId = env.GROUP_ID!
    const order = { env, topic: topics.calls, groupId, form: 'avro' as const, urls, inFlight: peerInFlight }
    return peer.start({ ...order, retryMs: Math.round(retryMs) })
  }
  const child = new Child('forwarding.ts', { core: measuredCore, env })
  await child.reported('ready')
  return child
}

/** Until each call to the endpoint that was produced before its return has come, or is a dead letter. */
async function untilLast(
  deployment: Deployment,
  receiver: Child,
  { goesAt, returnsAt, isPeer }: { goesAt: number; returnsAt: number; isPeer: boolean },
): Promise<number | null> {
  const ofOutage = { from: goesAt, to: returnsAt, of: [down], since: 'due' }
  const sent = Math.floor(((returnsAt - goesAt) / 1_000) * (rate / endpoints))
  for (const deadline = returnsAt + givenUpAfterS * 1_000; ; await delay(pollMs)) {
    const { calls } = await receiver.ask(ofOutage, 'quantiles')
    const dead = isPeer ? 0 : await recordsIn(deployment, deployment.topics.deadLetters)
    const lookedAt = monotonicMs()
    // A dead letter can be there twice, or be of a call that came all the same: they are read once there can be enough.
    const isEnough =
      calls! + dead >= sent &&
      (dead === 0 || (await endedOf(deployment, receiver, goesAt, returnsAt)) >= sent)
    if (isEnough) return round2((lookedAt - returnsAt) / 1_000)
    if (monotonicMs() > deadline) return null
  }
}

/** How many calls to the endpoint, of those that were due then, have come or are dead letters. */
async function endedOf(
  { kafka, topics, codecs }: Deployment,
  receiver: Child,
  from: number,
  to: number,
): Promise<number> {
  const asked = { cameFrom: from, cameTo: to, of: [down] }
  const { dueAt } = (await receiver.ask(asked, 'came')) as unknown as { dueAt: number[] }
  const ended = new Set(dueAt)
  for await (const { value } of readRange({ kafka, topic: topics.deadLetters, log })) {
    const { delivery } = await codecs.deadLetters.decode(value)
    if (delivery?.destinationId !== `destination-${down}`) continue
    const due = Number(delivery.messageId.split('-')[1])
    if (due >= from * 1_000 && due < to * 1_000) ended.add(due)
  }
  return ended.size
}

/** Until each call to the nine has come, or the last should have; how many have not. */
async function untilNineCame(receiver: Child, sent: readonly number[], endsAt: number): Promise<number> {
  const expected = nine.reduce((sum, index) => sum + sent[index]!, 0)
  const all = { from: 0, to: Number.MAX_VALUE, of: nine, since: 'due' }
  for (const deadline = endsAt + missingAfterMs; ; await delay(pollMs)) {
    const { calls } = await receiver.ask(all, 'quantiles')
    if (calls! >= expected || monotonicMs() > deadline) return Math.max(0, expected - calls!)
  }
}

async function waitedIn({ kafka, topics, codecs, config }: Deployment, calls: number): Promise<Waited> {
  const sums = { together: { times: 0, bytes: 0 }, alone: { times: 0, bytes: 0 } }
  for (const { name } of config.retryTiers) {
    for await (const { value } of readRange({ kafka, topic: topics.retry(name), log })) {
      const record = await codecs.retries(name).decode(value)
      const sum = isRun(record) ? sums.together : sums.alone
      sum.times += isRun(record) ? countOf(record) : 1
      sum.bytes += value!.length
    }
  }
  const each = ({ times, bytes }: typeof sums.alone) => ({
    times: round2(times / calls),
    bytes: Math.round(bytes / calls),
  })
  return { together: each(sums.together), alone: each(sums.alone) }
}

async function recordsIn({ kafka }: Deployment, topic: string): Promise<number> {
  const admin = kafka.admin()
  await admin.connect()
  try {
    const ends = await admin.fetchTopicOffsets(topic)
    return ends.reduce((sum, { high, low }) => sum + Number(high) - Number(low), 0)
  } finally {
    await admin.disconnect()
  }
}

function grownBy(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>) {
  return new Map([...after].map(([topic, bytes]) => [topic, bytes - (before.get(topic) ?? 0)]))
}

const until = (at: number) => delay(Math.max(0, at - monotonicMs()))
