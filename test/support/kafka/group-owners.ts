import type { TestContext } from 'node:test'
import kafkajs from 'kafkajs'
import type { Deployment } from '../deployment/deployment.ts'

const { AssignerProtocol } = kafkajs

interface Move {
  owner: string
  after: number
  by: number
}

/** Who owned each partition of the calls topic, as the group's coordinator saw it. */
export interface OwnerWatch {
  /** Member ids that owned the partition, in order; one entry if it never moved. */
  history: string[][]
  /**
   * Between which two looks the partition got another owner, where that can have been from the one time to the other;
   * all epoch ms. `owner` had it before.
   */
  moveBetween(partition: number, from: number, to: number): Move | undefined
  /** The ids of the group's members now. */
  memberIds(): readonly string[]
  /** How many there are. */
  members(): number
  stop(): Promise<void>
}

/** Looks every 25 ms while the group is stable. */
export function watchOwners(t: TestContext, deployment: Deployment): OwnerWatch {
  const { admin, config, topics } = deployment
  const history: string[][] = Array.from({ length: config.partitions.calls }, () => [])
  const seenAt: number[] = []
  const moves: (Move & { partition: number })[] = []
  let members: string[] = []
  let stopped = false
  const look = async () => {
    const askedAt = Date.now()
    const { groups } = await admin.describeGroups([config.groupId])
    const group = groups[0]!
    if (group.state !== 'Stable') return
    members = group.members.map(({ memberId }) => memberId)
    for (const { memberId, memberAssignment } of group.members) {
      const assigned = AssignerProtocol.MemberAssignment.decode(memberAssignment)?.assignment ?? {}
      for (const partition of assigned[topics.calls] ?? []) {
        const owners = (history[partition] ??= [])
        if (owners.at(-1) !== memberId) {
          const owner = owners.at(-1)
          if (owner !== undefined) moves.push({ partition, owner, after: seenAt[partition]!, by: Date.now() })
          owners.push(memberId)
        }
        seenAt[partition] = askedAt
      }
    }
  }
  const loop = async () => {
    while (!stopped) {
      await look().catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }
  const running = loop()
  const stop = async () => {
    stopped = true
    await running
  }
  t.after(stop)
  const moveBetween = (partition: number, from: number, to: number) =>
    moves.find((move) => move.partition === partition && move.after <= to && move.by >= from)
  return { history, moveBetween, memberIds: () => members, members: () => members.length, stop }
}
