import type { DeadLetter, Delivery } from '../../../src/core/delivery/delivery.ts'
import type { Deployment } from '../deployment/deployment.ts'

export const failedAt = Date.UTC(2026, 0, 31, 12)

/** A delivery that was tried at both of two URLs and refused with a 404 by the second. */
export function delivery(messageId: string, fields: Partial<Delivery> = {}): Delivery {
  const destinationId = fields.destinationId ?? 'crm'
  return {
    id: `${messageId}:${destinationId}`,
    messageId,
    sourceId: 'shop',
    destinationId,
    userIds: ['ann'],
    type: 'track',
    body: Buffer.from(`{"version":1,"type":"track","messageId":"${messageId}"}`),
    filled: null,
    endpointIds: ['u2'],
    attempts: 3,
    timesScheduled: 2,
    firstAttemptAt: failedAt - 60_000,
    firstScheduledAt: failedAt - 59_000,
    notBefore: failedAt,
    outcomes: [
      {
        endpointId: 'u1',
        kind: 'timeout',
        status: null,
        durationMs: 5_000,
        at: failedAt - 60_000,
        detail: 'no answer',
      },
      {
        endpointId: 'u2',
        kind: 'status_4xx',
        status: 404,
        durationMs: 12.4,
        at: failedAt - 10,
        detail: null,
      },
    ],
    lastResponse: {
      endpointId: 'u2',
      status: 404,
      body: Buffer.from('no such\u001b[2J page'),
      durationMs: 12.4,
      at: failedAt - 10,
    },
    lastExchange: {
      endpointId: 'u2',
      at: failedAt - 10,
      method: 'POST',
      url: 'https://hooks.example.com/orders',
      requestFields: 'host: hooks.example.com\nX-Key: [not shown]\n',
      bodyBytes: 52,
      responseFields: 'content-type: text/plain\nx-request-id: r-17\u001b[2J',
    },
    origin: { topic: 'analytics.calls', partition: 3, offset: 99, appendedAt: failedAt - 61_000 },
    ...fields,
  }
}

export function deadLetter(fields: Partial<DeadLetter> = {}): DeadLetter {
  return {
    reason: 'rejected',
    detail: null,
    failedAt,
    origin: fields.delivery?.origin ?? {
      topic: 'analytics.calls',
      partition: 3,
      offset: 99,
      appendedAt: failedAt - 61_000,
    },
    owner: 'member/1',
    from: { topic: 'analytics.calls', partition: 3, offset: 99, appendedAt: failedAt - 20 },
    delivery: null,
    raw: null,
    rawKey: null,
    omittedBytes: null,
    omittedSha256: null,
    ...fields,
  }
}

/** Writes dead letters as a forwarder does, to three partitions by turns or to the one given. */
export async function bury(
  { codecs, producer, topics }: Deployment,
  deadLetters: readonly DeadLetter[],
  partition?: number,
): Promise<void> {
  await codecs.deadLetters.ready()
  await producer.send({
    topic: topics.deadLetters,
    messages: deadLetters.map((deadLetter, index) => ({
      key: 'u-1',
      partition: partition ?? index % 3,
      value: codecs.deadLetters.encode(deadLetter),
    })),
  })
}
