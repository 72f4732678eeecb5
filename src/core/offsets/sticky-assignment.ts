/** One member of a consumer group, as the leader sees it. */
export interface GroupMember {
  id: string
  topics: readonly string[]
  /** What it owned when it joined, by topic. */
  owned: Readonly<Record<string, readonly number[]>>
  /** The generation in which it owned that; where two claim one partition, the later one is right. */
  generation: number
}

export type Assignment = Map<string, Record<string, number[]>>

/**
 * Shares partitions out evenly, topic by topic, among the members that subscribe to the topic, and moves as few
 * as that allows. When a topic's partitions do not divide evenly, members with one more keep it, otherwise the
 * member with the fewest partitions in all gets it. The result does not depend on the order of the members.
 */
export function assignSticky(
  members: readonly GroupMember[],
  partitions: ReadonlyMap<string, readonly number[]>,
): Assignment {
  const sorted = [...members].sort((a, b) => (a.id < b.id ? -1 : 1))
  const assignment: Assignment = new Map(sorted.map((member) => [member.id, {}]))
  const load = new Map(sorted.map((member) => [member.id, 0]))
  for (const topic of [...partitions.keys()].sort()) {
    const subscribers = sorted.filter((member) => member.topics.includes(topic))
    if (subscribers.length === 0) continue
    const shares = shareTopic(topic, partitions.get(topic)!, subscribers, load)
    for (const [id, share] of shares) {
      if (share.length === 0) continue
      assignment.get(id)![topic] = share.sort((a, b) => a - b)
      load.set(id, load.get(id)! + share.length)
    }
  }
  return assignment
}

function shareTopic(
  topic: string,
  partitions: readonly number[],
  subscribers: readonly GroupMember[],
  load: ReadonlyMap<string, number>,
): Map<string, number[]> {
  const owners = currentOwners(topic, partitions, subscribers)
  const owned = new Map<string, number[]>(subscribers.map((member) => [member.id, []]))
  const free: number[] = []
  for (const partition of [...partitions].sort((a, b) => a - b)) {
    const owner = owners.get(partition)
    if (owner === undefined) free.push(partition)
    else owned.get(owner)!.push(partition)
  }
  const min = Math.floor(partitions.length / subscribers.length)
  const withOneMore = partitions.length % subscribers.length
  // Members with the most partitions come first, so that the larger shares stay where they are.
  const order = [...subscribers].sort(
    (a, b) =>
      Math.min(owned.get(b.id)!.length, min + 1) - Math.min(owned.get(a.id)!.length, min + 1) ||
      load.get(a.id)! - load.get(b.id)! ||
      (a.id < b.id ? -1 : 1),
  )
  const quota = new Map(order.map((member, index) => [member.id, min + (index < withOneMore ? 1 : 0)]))
  for (const [id, share] of owned) free.push(...share.splice(quota.get(id)!))
  free.sort((a, b) => a - b)
  for (const member of order) {
    const share = owned.get(member.id)!
    share.push(...free.splice(0, quota.get(member.id)! - share.length))
  }
  return owned
}

function currentOwners(
  topic: string,
  partitions: readonly number[],
  subscribers: readonly GroupMember[],
): Map<number, string> {
  const known = new Set(partitions)
  const claims = new Map<number, GroupMember>()
  for (const member of subscribers) {
    for (const partition of member.owned[topic] ?? []) {
      const rival = claims.get(partition)
      if (known.has(partition) && (!rival || member.generation > rival.generation))
        claims.set(partition, member)
    }
  }
  return new Map([...claims].map(([partition, member]) => [partition, member.id]))
}
