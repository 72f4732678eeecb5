// Replays whose process ends before any of its effects, on topics that outlive it.
import { noRules } from '../../../src/core/settings/deployment-rules.ts'
import assert from 'node:assert/strict'
import { dryRun, type DryRunReport } from '../../../src/operators/replay/dry-run.ts'
import { LedgerPasses } from '../../../src/operators/replay/ledger.ts'
import { ReplayRunner } from '../../../src/operators/replay/runner.ts'
import {
  keyOfPlace,
  type PartitionSpan,
  type ReplayedRecord,
  type ReplayProgress,
  type ReplayRig,
  type ReplaySource,
} from '../../../src/operators/replay/rig.ts'
import type { StoredDeadLetter, StoredRecord } from '../../../src/operators/dead-letters/dead-letters.ts'
import {
  noTotals,
  type ReplayJob,
  type ReplayKind,
  type ReplayTotals,
} from '../../../src/core/replay/replay-job.ts'
import type { DeadLetter, RetryDelivery } from '../../../src/core/delivery/delivery.ts'
import type { SettingsCommand } from '../../../src/core/settings/commands.ts'
import type { SettingsEvent } from '../../../src/core/settings/events.ts'
import { PostriderError } from '../../../src/errors.ts'
import { timeNow, timePasses, watchWaits } from '../quick-time.ts'
import {
  chosenReasons,
  deadLetterKinds,
  erasedUser,
  kafkaGroup,
  type Replayable,
  type ReplayWorld,
} from './replay-world.ts'

const sessionMs = 30_000
/** Progress is noted twice a second: every third effect. */
const effectMs = 200
/** What lies between two notes of progress, with batches of two calls. */
const maxUnnoted = 9
const stuckMs = 600_000

/** What a process does before it ends. */
export interface ReplayWork {
  /** Ends the pause first, as its user asked for. */
  resumes?: boolean
  /** How many effects it has until it is killed, or told to stop; none: it comes to its end. */
  effects?: number
  /** Whether the effect that is cut off reaches Kafka all the same. */
  last?: 'arrived' | 'lost'
  end?: 'killed' | 'told to stop'
}

class Killed extends Error {}

let processes = 0

/** Runs the replays of the world; resolves to whether it was not cut off. */
export async function runProcess(
  world: ReplayWorld,
  { resumes = false, effects = Infinity, last = 'lost', end = 'killed' }: ReplayWork,
): Promise<boolean> {
  const process = ++processes
  const ending = new AbortController()
  let [left, isDead, isCut, isStuck] = [effects, false, false, false]
  const began = timeNow()
  watchWaits(() => {
    if (timeNow() - began < stuckMs) return
    isStuck = true
    ending.abort()
  })
  const effect = <T>(apply: () => T): T => {
    if (isDead) throw new Killed()
    timePasses(effectMs)
    if (left-- > 0 || isCut) return apply()
    isCut = true
    ending.abort()
    if (end === 'told to stop') return apply()
    isDead = true
    if (last === 'arrived') apply()
    throw new Killed()
  }
  const settle = (command: SettingsCommand) =>
    effect(() => {
      const event = world.execute(command)
      if (event?.type === 'replay_finished') {
        checkNoted(world)
        setImmediate(() => ending.abort())
      }
      return event
    })
  const warnings = new Set<string>()
  const rig = rigOf(world, process, effect, settle, warnings)
  try {
    if (resumes) settle({ type: 'resume_destination', id: 'crm', pauseId: null, at: timeNow() })
    await new ReplayRunner(rig).run(ending.signal)
  } catch (error) {
    if (!(error instanceof Killed)) throw error
  }
  assert(!isStuck, `it does not come to its end: ${[...warnings].join('; ')}`)
  if (!isDead) assert.deepEqual([...warnings], [])
  return !isCut
}

const sourceOf = (world: ReplayWorld): ReplaySource => ({
  async spans(topic, since = -Infinity) {
    if (topic === world.topics.deliveries) world.beat()
    return world.partitions(topic).map((records, partition) => {
      const first = records.findIndex(({ timestamp }) => timestamp >= since)
      return { partition, low: first < 0 ? records.length : first, high: records.length }
    })
  },
  committed: async () => world.look(),
  read: (topic, spans) => mixed(world, topic, spans),
  async each(topic, spans, take) {
    for await (const record of mixed(world, topic, spans)) await take(record)
  },
  async *settings() {
    yield* world.history
  },
  call: async (value) => world.valueOf(value) as never,
  retry: async (value) => world.valueOf(value) as never,
  deadLetter: async (value) => world.valueOf(value) as never,
  storedDeadLetter: async (record) => storedIn(world, record),
  mayName: () => () => true,
  topics: async () => new Set([world.topics.calls]),
  eventsOf: () => async (value) => world.valueOf(value) as never,
})

function rigOf(
  world: ReplayWorld,
  process: number,
  effect: <T>(apply: () => T) => T,
  settle: (command: SettingsCommand) => SettingsEvent | null,
  warnings: Set<string>,
): ReplayRig {
  let asks = 0
  const source = sourceOf(world)
  return {
    settings: {
      get state() {
        return world.settings
      },
      rules: noRules,
      authorAfter: () => null,
      async catchUp() {},
      async execute(command) {
        settle(command)
        return world.settings
      },
      async perform(command) {
        assert(command.type !== 'apply_settings')
        return { event: settle(command), state: world.settings, repeated: false }
      },
    },
    topics: world.topics,
    groupId: kafkaGroup,
    source,
    ledger: new LedgerPasses(source, world.topics.deliveries),
    progress: async () => structuredClone([...world.progress.values()]),
    async acquire() {
      if (world.lease !== null && world.lease.endsAt > timeNow())
        throw new PostriderError('conflict', 'another process holds it')
      world.lease = { process, endsAt: timeNow() + sessionMs }
      return {
        check() {},
        async commit(progress) {
          for (const each of progress) effect(() => note(world, process, each))
        },
        release: async () => effect(() => void (world.lease = null)),
      }
    },
    openTopic: async () => ({
      async append(records) {
        // One request a partition: any of them may arrive alone.
        for (const partition of [0, 1]) {
          const own = records.filter(({ key }) => partitionOf(key) === partition)
          if (own.length === 0) continue
          effect(() => {
            for (const record of own) world.sent[partition]!.push({ process, delivery: deliveryOf(record) })
          })
        }
        return []
      },
      // Now and then the forwarders are not fast enough.
      lag: async () => (++asks % 3 === 0 ? 20_000 : 19_996),
      close() {},
    }),
    erasures: async () => ({ covers: ({ userIds }) => userIds.includes(erasedUser) }),
    newId: () => 'replay-x',
    random: () => 7,
    log: { info() {}, warn: (fields, message) => void warnings.add(`${message} ${JSON.stringify(fields)}`) },
    now: timeNow,
  }
}

/** A record that is none stands for one by what it holds. */
const deliveryOf = (record: ReplayedRecord): RetryDelivery =>
  'delivery' in record
    ? record.delivery
    : ({ id: 'run' in record ? 'run' : Buffer.from(record.value).toString() } as RetryDelivery)

function storedIn(world: ReplayWorld, record: StoredRecord): StoredDeadLetter {
  const { partition, offset, key, value, timestamp } = record
  const deadLetter = world.valueOf(value) as DeadLetter | null
  const userIds = [Buffer.from(key!).toString()]
  return {
    ...{ id: `${partition}-${offset}`, record, deadLetter, problem: deadLetter ? null : 'no Avro' },
    failedAt: deadLetter?.failedAt ?? timestamp,
    owner: { sourceId: 'shop', type: 'track', userIds, appendedAt: timestamp },
  }
}

const partitionOf = (key: Uint8Array | null): number =>
  key && Buffer.from(key).toString()[1] === '1' ? 1 : 0

async function* mixed(
  world: ReplayWorld,
  topic: string,
  spans: readonly PartitionSpan[],
): AsyncGenerator<StoredRecord> {
  const longest = Math.max(0, ...spans.map(({ low, high }) => high - low))
  for (let index = 0; index < longest; index++)
    for (const { partition, low, high } of spans)
      if (low + index < high) yield world.partitions(topic)[partition]![low + index]!
}

/** The replay that is there, or was. */
function jobOf({ settings }: ReplayWorld): ReplayJob {
  const [job] = [...settings.replays.values()].filter(({ state }) => state !== 'cancelled')
  return job!
}

/** What the replay has to send, by the id under which it does. */
function wantedOf(world: ReplayWorld): Map<string, Replayable> {
  const job = jobOf(world)
  const { id } = job
  const wanted = world.replayable.filter(({ kind, place }) =>
    job.deadLetters === null
      ? place.topic !== world.topics.deadLetters && job.only.some((each) => each === kind)
      : place.topic === world.topics.deadLetters,
  )
  return new Map(wanted.map((each) => [each.kind === 'delivered' ? `${each.id}:${id}` : each.id, each]))
}

function note(world: ReplayWorld, process: number, progress: ReplayProgress): void {
  assert.equal(world.lease?.process, process)
  world.progress.set(keyOfPlace(progress), structuredClone(progress))
  checkNoted(world)
}

/** What progress says was sent lies there. */
function checkNoted(world: ReplayWorld): void {
  const sent = new Set(world.sent.flat().map(({ delivery }) => delivery.id))
  for (const [id, { place }] of wantedOf(world)) {
    const { position = 0 } = world.progress.get(keyOfPlace(place)) ?? {}
    if (place.offset < position) assert(sent.has(id), `${id} is noted and was not sent`)
  }
}

/** What lies in the replay's topic beyond what progress says: a crash may repeat it. */
export function unnotedOf(world: ReplayWorld): Set<string> {
  if (jobOf(world) === undefined) return new Set()
  const sent = new Set(world.sent.flat().map(({ delivery }) => delivery.id))
  const open = [...wantedOf(world)].filter(([id, { place }]) => {
    const { position = 0 } = world.progress.get(keyOfPlace(place)) ?? {}
    return sent.has(id) && place.offset >= position
  })
  assert(open.length <= maxUnnoted, `${open.length} were sent since progress was noted last`)
  return new Set(open.map(([id]) => id))
}

/** Each wanted delivery was sent, in its user's order; twice only those; nothing else; and the books say so. */
export function checkSent(world: ReplayWorld, mayRepeat: ReadonlySet<string>): void {
  const wanted = wantedOf(world)
  const [lives, orders] = [new Map<string, number>(), new Map<string, number>()]
  for (const { process, delivery } of world.sent.flat()) {
    const { id } = delivery
    const found = wanted.get(id)
    assert(found, `${id} was sent and nobody asked for it`)
    assert(!lives.has(id) || mayRepeat.has(id), `${id} was sent twice`)
    assert.notEqual(lives.get(id), process, `${id} was sent twice by one process`)
    lives.set(id, process)
    const { topic, offset } = found.place
    const line = `${process} ${found.user} ${topic}`
    assert(offset >= (orders.get(line) ?? 0), `${id} came after a later call of its user`)
    orders.set(line, offset)
  }
  for (const id of wanted.keys()) assert(lives.has(id), `${id} was not sent`)
  const job = jobOf(world)
  assert.equal(job.state, 'finished')
  for (const type of ['replay_started', 'replay_finished'])
    assert.equal(
      world.events.filter((event) => event.type === type && idOf(event) === job.id).length,
      1,
      type,
    )
  const totals = { ...noTotals(), ...lookedAt(world, job) }
  for (const { kind } of wanted.values()) totals[kind]++
  assert.deepEqual(job.totals, totals)
}

const idOf = (event: SettingsEvent): string =>
  event.type === 'replay_started' ? event.replay.id : (event as { id: string }).id

/** Of a pause, all from the first record that was held in a partition to the last one. */
function lookedAt(world: ReplayWorld, job: ReplayJob): Partial<ReplayTotals> {
  if (job.deadLetters !== null)
    return { looked: 2 * deadLetterKinds.length, erased: 2, refused: 2, repeated: 4 }
  const { only, pauseId } = job
  const { calls, retry } = world.topics
  const erasedIn = (records: readonly StoredRecord[]) =>
    records.filter(({ key }) => Buffer.from(key!).toString() === erasedUser).length
  let [looked, erased] = [0, 0]
  for (const topic of only.includes('held') ? [calls, world.retryTopic] : [calls])
    for (const [partition, records] of world.partitions(topic).entries()) {
      const held = world.replayable
        .filter(
          ({ kind, place }) => kind === 'held' && keyOfPlace(place) === keyOfPlace({ topic, partition }),
        )
        .map(({ place }) => place.offset)
      const isWhole = pauseId === null && topic !== retry('10s')
      looked += isWhole ? records.length : Math.max(...held) + 1 - Math.min(...held)
      if (only.includes('held') || held.length === 0) erased += erasedIn(records) * deliveriesOf(world)
    }
  return { looked, erased }
}

/** Of a call. */
const deliveriesOf = ({ settings }: ReplayWorld): number => {
  const { options, urls } = settings.destinations.get('crm')!
  return options.deliverTo === 'every' ? urls.length : 1
}

/** What a dry run counts while another user is erased, too. */
export function dryRunOf(world: ReplayWorld, only: ReplayKind[], alsoErased: string): Promise<DryRunReport> {
  const settle = () => assert.fail('it changes the settings')
  const rig = rigOf(world, 0, (apply) => apply(), settle, new Set())
  const isErased = (user: string) => user === erasedUser || user === alsoErased
  rig.erasures = async () => ({ covers: ({ userIds }) => userIds.some(isErased) })
  const range = { deadLetters: null, destinationId: 'crm', only, since: 0, until: timeNow() }
  const all = { types: null, events: null, user: null, messageId: null, rate: null }
  return dryRun({ ...range, ...all }, rig, new AbortController().signal, () => {})
}

/** Asks for a replay of all that there is, two at a time. */
export function askFor(world: ReplayWorld, only: ReplayKind[]): void {
  const now = timeNow()
  const range = { deadLetters: null, destinationId: 'crm', only, since: 0, until: now }
  const all = { types: null, events: null, user: null, messageId: null }
  const start = {
    ...{ id: 'replay-1', terms: { ...range, ...all, rate: 10 }, pauseId: null },
    keptSince: null,
  }
  world.execute({ type: 'start_replay', ...start, at: now })
}

/** Asks for a replay of the dead letters that there are, two at a time. Another one comes in right after that. */
export function askForDeadLetters(world: ReplayWorld): void {
  const choice = { ids: null, reason: chosenReasons, destination: null, status: null, kinds: null }
  const ends = [0, 1].map((partition) => ({ partition, offset: deadLetterKinds.length }))
  const at = timeNow()
  world.execute({
    type: 'start_replay',
    id: 'replay-1',
    terms: { deadLetters: choice, since: null, until: null, rate: 10, ends },
    pauseId: null,
    keptSince: null,
    at,
  })
  for (const partition of [0, 1]) world.addDeadLetter(partition, 'again', 0)
}
