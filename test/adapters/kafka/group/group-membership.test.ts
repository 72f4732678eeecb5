import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  GroupMembership,
  groupTransitions,
  type GroupEvent,
  type GroupState,
} from '../../../../src/adapters/kafka/group/group-membership.ts'

/** A membership and its clock. */
function membership() {
  const clock = { now: 1_000 }
  const limits = { sessionTimeoutMs: 9_000, maxStallMs: 60_000 }
  return { clock, member: new GroupMembership(limits, () => clock.now) }
}

const events: Record<GroupEvent, (member: GroupMembership) => void> = {
  joined: (member) => member.joined(false),
  rejoins: (member) => member.rejoins(),
  join_ended: (member) => member.joinEnded(),
  broke_off: (member) => member.brokeOff(),
  stopped: (member) => member.stopped(),
}
const wayTo: Record<GroupState, GroupEvent[]> = {
  connecting: [],
  member: ['joined'],
  rejoining: ['joined', 'rejoins'],
  stopped: ['stopped'],
}

test('each event leads to the state in the table, and an event that the table lacks is a bug', () => {
  for (const state of Object.keys(groupTransitions) as GroupState[])
    for (const event of Object.keys(events) as GroupEvent[]) {
      const { member } = membership()
      for (const step of wayTo[state]) events[step](member)
      assert.equal(member.state, state)
      const to = groupTransitions[state][event]
      if (to === undefined) assert.throws(() => events[event](member), /a bug: .* cannot happen/)
      else events[event](member)
      assert.equal(member.state, to ?? state)
    }
})

test('requests start only while the last heartbeat is younger than two thirds of the session and no rebalance runs', () => {
  const { clock, member } = membership()
  assert.equal(member.mayStart, false)
  member.asked(0)
  member.joined(false)
  assert.equal(member.mayStart, true)
  clock.now += 5_999
  assert.equal(member.mayStart, true)
  clock.now += 1
  assert.equal(member.mayStart, false)
  // The answer lay there for a second: it is as old as its question.
  member.asked(1_000)
  member.answered()
  clock.now += 5_000
  assert.equal(member.isFresh, false)
  member.asked(0)
  member.answered()
  member.rejoins()
  assert.deepEqual([member.isFresh, member.mayStart, member.isMember], [true, false, true])
  member.joinEnded()
  assert.equal(member.mayStart, true)
  member.brokeOff()
  assert.deepEqual([member.isFresh, member.isMember], [false, false])
})

test('commits that fail for long are reported as a problem until one succeeds, and in the end stop the consumer', () => {
  const { clock, member } = membership()
  member.asked(0)
  member.joined(false)
  const began = clock.now
  member.committed(false)
  clock.now += 9_999
  assert.equal(member.refusedProblem, null)
  clock.now += 1
  assert.equal(member.refusedProblem, 'Kafka has refused commits for 10 s')
  member.committed(true)
  assert.equal(member.refusedProblem, null)
  member.committed(false)
  clock.now += 60_000
  member.asked(0)
  member.answered()
  assert.equal(member.stalledSince(began), 'its commits have been refused for 60 s')
  member.committed(true)
  assert.equal(member.stalledSince(began), null)
  clock.now += 60_000
  assert.equal(member.stalledSince(began), 'it has been no member of its group for 60 s')
})

test('ownership of a new member is uncertain until its first fetch is answered; that of a member that stays is not', () => {
  const { clock, member } = membership()
  member.joined(false)
  assert.equal(member.isDoubtful, true)
  member.fetched()
  assert.equal(member.isDoubtful, false)
  member.joined(true)
  assert.equal(member.isDoubtful, false)
  member.joined(false)
  clock.now += 5_000
  assert.equal(member.isDoubtful, false)
})
