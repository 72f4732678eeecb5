// Syncs whose process is killed, on topics that outlive it.
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import type { ComputationKind } from '../../src/core/audience/computations.ts'
import type { PlacedMembership } from '../../src/core/audience/membership.ts'
import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import type { SettingsCommand } from '../../src/core/settings/commands.ts'
import { decide } from '../../src/core/settings/decide.ts'
import { evolve } from '../../src/core/settings/events.ts'
import { initialSettings } from '../../src/core/settings/settings.ts'
import { FileStagedList } from '../../src/operators/audiences/staged-list.ts'
import { MembershipDatabase } from '../../src/operators/audiences/store.ts'
import {
  type Change,
  type MemberBatch,
  type MembershipStore,
  deleteComputation,
  syncComputation,
  syncMessageId,
  type SyncPorts,
} from '../../src/operators/audiences/sync.ts'

/** Whether calls that nobody has waited for yet are in Kafka when their process is killed. */
export type Unflushed = 'arrived' | 'lost'

/** What lies in Kafka: it outlives every process. */
export class Topics {
  memberships: PlacedMembership[] = []
  calls: AnalyticsCall[] = []
  settings = initialSettings
  #syncs = 0

  constructor() {
    this.execute({ type: 'create_source', id: 'shop', name: 'S', writeKey: 'k', enabled: true })
    for (const [kind, id, name] of [
      ['audience', 'vip', 'VIP'],
      ['trait', 'ltv', 'LTV'],
    ] as const)
      this.execute({ type: 'create_computation', kind, id, name, sourceId: 'shop' })
  }

  execute(command: SettingsCommand): void {
    const decision = decide(command, this.settings)
    assert(decision.accepted, JSON.stringify(decision))
    if (decision.event) this.settings = evolve(this.settings, decision.event)
  }

  newSyncId = () => `s${++this.#syncs}`
}

class Killed extends Error {}

/** A process that is killed before its effect number `effects`, with a view of its own that it rebuilds. */
function processOn(
  topics: Topics,
  effects: number,
  unflushed: Unflushed,
  beforeFlush: () => void,
): SyncPorts & { close(): void } {
  let [left, waiting] = [effects, [] as AnalyticsCall[]]
  const effect = () => {
    if (left-- <= 0) throw new Killed()
  }
  const database = new MembershipDatabase(':memory:', 'test')
  const store: MembershipStore = {
    async catchUp() {
      database.takeRead(topics.memberships, database.state.beginning)
    },
    count: (id) => database.count(id),
    openList() {
      const list = new FileStagedList(tmpdir(), (id, bucket) => database.members(id, bucket))
      return {
        add: (batch) => list.add(batch),
        get count() {
          return list.count
        },
        compare: (id, full) => list.compare(id, full),
        *changes(): Generator<Change[]> {
          for (const batch of list.changes())
            for (let at = 0; at < batch.length; at += 2) yield batch.slice(at, at + 2)
        },
        close: () => list.close(),
      }
    },
    writtenBy: (id, syncId) => database.writtenBy(id, syncId),
    users: (id) => database.users(id),
  }
  return {
    settings: {
      get state() {
        return topics.settings
      },
      async catchUp() {},
      async execute(command) {
        effect()
        topics.execute(command)
        return topics.settings
      },
    },
    store,
    sink: {
      async writeMemberships(records) {
        for (const record of records) {
          effect()
          const offset = topics.memberships.length
          topics.memberships.push({ ...record, partition: 0, offset, timestamp: offset })
        }
      },
      async writeCalls(calls) {
        for (const call of calls) {
          effect()
          if (unflushed === 'arrived') topics.calls.push(call)
          else waiting.push(call)
        }
      },
      async flushCalls() {
        beforeFlush()
        effect()
        topics.calls.push(...waiting)
        waiting = []
      },
    },
    acquire: async () => ({ check() {}, async release() {} }),
    newSyncId: topics.newSyncId,
    now: () => 1_000,
    close: () => database.close(),
  }
}

/** What a process does before it is killed. */
export interface Work {
  kind?: ComputationKind
  mode?: 'full' | 'change' | 'delete'
  batches?: readonly Pick<MemberBatch, 'users' | 'values' | 'member'>[]
  /** How many effects it has until it is killed; none: it comes to its end. */
  effects?: number
  unflushed?: Unflushed
  beforeFlush?: () => void
}

/** Whether it came to its end. */
export async function work(
  topics: Topics,
  {
    kind = 'audience',
    mode = 'full',
    batches = [],
    effects = Infinity,
    unflushed = 'arrived',
    beforeFlush = () => {},
  }: Work,
): Promise<boolean> {
  const ports = processOn(topics, effects, unflushed, beforeFlush)
  const id = kind === 'audience' ? 'vip' : 'ltv'
  const list = async function* () {
    for (const batch of batches) yield { ...batch, list: null, line: 0 }
  }
  try {
    if (mode === 'delete') await deleteComputation({ kind, id, notify: true }, ports)
    else await syncComputation({ kind, id, mode }, list(), ports, { allowEmpty: true })
    return true
  } catch (error) {
    assert(error instanceof Killed, String(error))
    return false
  } finally {
    ports.close()
  }
}

/** Each change was told, under one id, and what was told last is what holds: these traits, by user. */
export function checkTold(
  { memberships, calls, settings }: Topics,
  kind: ComputationKind,
  held: ReadonlyMap<string, string>,
): void {
  const written = memberships.flatMap(({ membership }) => membership ?? [])
  const changes = new Map(written.map((membership) => [syncMessageId(membership), membership]))
  assert.equal(changes.size, written.length, 'one change of a user a sync')
  const told = new Map<string, string>()
  const last = new Map<string, string>()
  for (const { messageId, userId, traits } of calls) {
    const change = changes.get(messageId)
    assert(change, 'a call is of a change that was written')
    assert.equal(userId, change.userId)
    assert.equal(traits, kind === 'audience' ? `{"vip":${change.member}}` : `{"ltv":${change.value}}`)
    assert.equal(told.get(messageId) ?? traits, traits, 'one message is one call')
    told.set(messageId, traits)
    last.set(userId, traits)
  }
  assert.equal(told.size, changes.size, 'each change was told')
  const states = new Map<string, string>()
  for (const { userId, member, value } of written) {
    const state = `${member} ${value}`
    assert.notEqual(states.get(userId) ?? 'false null', state, 'only what changed')
    states.set(userId, state)
  }
  const none = kind === 'audience' ? '{"vip":false}' : '{"ltv":null}'
  const now = [...last].filter(([, traits]) => traits !== none)
  assert.deepEqual(now.toSorted(), [...held].toSorted(), 'what was told last is what holds')
  assert.equal(settings.computations.get(kind === 'audience' ? 'vip' : 'ltv')!.openSync, null)
}
