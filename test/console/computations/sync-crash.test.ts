// A sync that is killed before any of its effects, and the next one before any of its own: every pair of places.
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { MembershipDatabase } from '../../../src/adapters/store/membership-database.ts'
import { StagedList } from '../../../src/adapters/store/staged-list.ts'
import type { Change, MembershipStore } from '../../../src/console/computations/ports.ts'
import { syncComputation, syncMessageId, type SyncPorts } from '../../../src/console/computations/sync.ts'
import type { AnalyticsCall } from '../../../src/core/analytics-call.ts'
import type { PlacedMembership } from '../../../src/core/membership.ts'
import { decide } from '../../../src/core/settings-decide.ts'
import { evolve } from '../../../src/core/settings-events.ts'
import { initialSettings } from '../../../src/core/settings.ts'
import type { SettingsCommand } from '../../../src/core/settings-commands.ts'

/** Whether calls that nobody has waited for yet are in Kafka when their process is killed. */
type Unflushed = 'arrived' | 'lost'

/** What lies in Kafka: it outlives every process. */
class Topics {
  memberships: PlacedMembership[] = []
  calls: AnalyticsCall[] = []
  settings = initialSettings
  #syncs = 0

  execute(command: SettingsCommand): void {
    const decision = decide(command, this.settings)
    assert(decision.accepted, JSON.stringify(decision))
    if (decision.event) this.settings = evolve(this.settings, decision.event)
  }

  newSyncId = () => `s${++this.#syncs}`
}

class Killed extends Error {}

/** A process that is killed before its effect number `effects`, with a view of its own that it builds anew. */
function processOn(topics: Topics, effects: number, unflushed: Unflushed): SyncPorts & { close(): void } {
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
      const list = new StagedList(tmpdir(), (id, bucket) => database.members(id, bucket))
      return {
        add: (lot) => list.add(lot),
        get count() {
          return list.count
        },
        compare: (id, full) => list.compare(id, full),
        *changes(): Generator<Change[]> {
          for (const lot of list.changes())
            for (let at = 0; at < lot.length; at += 2) yield lot.slice(at, at + 2)
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

/** Whether it came to its end. */
async function sync(
  topics: Topics,
  users: string[],
  effects: number,
  unflushed: Unflushed,
): Promise<boolean> {
  const ports = processOn(topics, effects, unflushed)
  const list = async function* () {
    yield { users, values: null, member: true, list: null, line: 1 }
  }
  try {
    await syncComputation({ kind: 'audience', id: 'vip', mode: 'full' }, list(), ports)
    return true
  } catch (error) {
    assert(error instanceof Killed, String(error))
    return false
  } finally {
    ports.close()
  }
}

async function begun(): Promise<Topics> {
  const topics = new Topics()
  topics.execute({ type: 'create_source', id: 'shop', name: 'S', writeKey: 'k', enabled: true })
  topics.execute({ type: 'create_computation', kind: 'audience', id: 'vip', name: 'VIP', sourceId: 'shop' })
  assert(await sync(topics, ['a', 'b', 'c'], Infinity, 'arrived'))
  return topics
}

function check({ memberships, calls, settings }: Topics, members: readonly string[]): void {
  const changes = new Map(memberships.map(({ membership }) => [syncMessageId(membership!), membership!]))
  assert.equal(changes.size, memberships.length, 'one change of a user a sync')
  const told = new Map<string, string>()
  const last = new Map<string, boolean>()
  for (const { messageId, userId, traits } of calls) {
    const change = changes.get(messageId)
    assert(change, 'a call is of a change that was written')
    assert.equal(userId, change.userId)
    assert.equal(traits, `{"vip":${change.member}}`)
    assert.equal(told.get(messageId) ?? traits, traits, 'one message is one call')
    told.set(messageId, traits!)
    last.set(userId!, change.member)
  }
  assert.equal(told.size, changes.size, 'each change was told')
  const states = new Map<string, boolean>()
  for (const { userId, membership } of memberships) {
    assert.notEqual(states.get(userId) ?? false, membership!.member, 'only what changed')
    states.set(userId, membership!.member)
  }
  const now = [...last].flatMap(([user, member]) => (member ? [user] : []))
  assert.deepEqual(now.toSorted(), members.toSorted(), 'what was told last is what holds')
  assert.equal(settings.computations.get('vip')!.openSync, null)
}

for (const unflushed of ['arrived', 'lost'] as const)
  for (const [what, second, third] of [
    ['the same list', ['b', 'c', 'd', 'e', 'f'], ['b', 'c', 'd', 'e', 'f']],
    ['other lists', ['a', 'c', 'e', 'g'], ['h', 'b', 'a']],
    ['the list before', ['a', 'b', 'c'], ['a', 'b', 'c']],
  ] as const)
    test(`two syncs in a row that are killed anywhere, with ${what} afterwards and calls on their way ${unflushed}, tell of each change under one id`, async () => {
      let cuts = 0
      for (let first = 0; ; first++) {
        let ended = false
        for (let then = 0; ; then++) {
          const topics = await begun()
          ended = await sync(topics, ['b', 'c', 'd', 'e', 'f'], first, unflushed)
          const secondEnded = await sync(topics, [...second], then, unflushed)
          await sync(topics, [...third], Infinity, unflushed)
          check(topics, third)
          cuts++
          if (secondEnded) break
        }
        if (ended) break
      }
      assert(cuts > 50, `${cuts} pairs of places`)
    })
