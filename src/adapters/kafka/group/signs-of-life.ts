import type { Consumer } from 'kafkajs'

/** Requests that only a member of the group gets an answer to. */
const provesMembership = new Set(['SyncGroup', 'Heartbeat'])

/**
 * Calls `asked` with how many ms ago such a request of the consumer went out, just before kafkajs emits what its answer
 * was. The answer may have lain here while this process was frozen: what it says was true when it was asked for.
 */
export function onProofAsked(consumer: Consumer, asked: (agoMs: number) => void): void {
  consumer.on(consumer.events.REQUEST, ({ payload }) => {
    if (provesMembership.has(payload.apiName)) asked(Math.max(0, Date.now() - payload.sentAt))
  })
}
