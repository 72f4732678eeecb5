import { silentLogger, type Patch } from './patch.ts'

interface ConsumerGroup {
  memberId: string | null
  fetch(nodeId: unknown): Promise<unknown[]>
}

const file = 'src/consumer/consumerGroup'
/** Kafka's UNKNOWN_MEMBER_ID, by which kafkajs joins again. */
const unknownMemberId = 25

/**
 * When the coordinator no longer knows a member, kafkajs drops its member id and joins again. If that fails, it goes on
 * fetching without an id: without one it sends no heartbeat, so it never learns that it is no member. Now a consumer
 * without a member id joins before it fetches.
 */
export const rejoinWhenForgotten: Patch = {
  name: 'rejoin-when-forgotten',
  targets: [
    {
      file,
      members: { 'prototype.fetch': 'function', 'prototype.joinAndSync': 'function' },
      fields: { args: [{ logger: silentLogger }], kinds: { lastRequest: 'number' } },
    },
    { file: 'src/protocol/error', members: { createErrorFromCode: 'function' } },
  ],
  install(load) {
    const { prototype } = load(file) as { prototype: ConsumerGroup }
    const { createErrorFromCode } = load('src/protocol/error') as {
      createErrorFromCode: (code: number) => Error
    }
    const { fetch } = prototype
    prototype.fetch = function (this: ConsumerGroup, nodeId) {
      if (!this.memberId) return Promise.reject(createErrorFromCode(unknownMemberId))
      return fetch.call(this, nodeId)
    }
  },
}
