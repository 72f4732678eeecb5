import { randomBytes } from 'node:crypto'
import { DeletionWriter } from '../../adapters/kafka/write/deletion-writer.ts'
import { GroupLease } from '../../adapters/kafka/group/lease.ts'
import { readRange } from '../../adapters/kafka/read/read-range.ts'
import { listDeletions, requestIdOf, showDeletion } from '../../console/deletions/history.ts'
import { requestDeletionOnce, type OncePorts } from '../../console/deletions/once.ts'
import type { DeletionPorts, LedgerReadOptions } from '../../console/deletions/deletion-records.ts'
import type { Deletions } from '../../console/deletions/deletions.ts'
import { requestDeletion, resumeDeletions } from '../../console/deletions/request.ts'
import type { Context } from '../context.ts'

/** A process that was killed holds the key of its request for so long, in ms. */
const leaseMs = 10_000

export interface OpenDeletions extends Deletions {
  close(): Promise<void>
}

/** Deletion requests, for commands and API alike. Asks for nothing yet. */
export function openDeletions(deployment: Context, settings: DeletionPorts['settings']): OpenDeletions {
  const { config, kafka, log, topics, codecs } = deployment
  const writer = new DeletionWriter({ kafka, topics, codecs, log })
  const recordsOf = (topic: string, { since, signal }: LedgerReadOptions) =>
    readRange({
      kafka,
      topic,
      log,
      ...(since !== undefined && { since }),
      ...(signal && { signal }),
    })
  const ports: OncePorts = {
    settings,
    erasures: {
      write: (erasures) => writer.writeErasures(erasures),
      async *read(options) {
        for await (const { value, offset, timestamp } of recordsOf(topics.erasures, options)) {
          const erasure = await codecs.erasures.read(value, (error) =>
            log.warn({ topic: topics.erasures, offset, error }, 'an erasure cannot be read'),
          )
          if (erasure) yield { erasure, appendedAt: timestamp }
        }
      },
    },
    openCalls: () => writer.openCalls(),
    async *events(messageIdPrefix, options) {
      const prefix = Buffer.from(messageIdPrefix)
      for await (const { key, value } of recordsOf(topics.deliveries, options)) {
        // Its key is the messageId: what is of other calls, which is nearly all, need not be read.
        if (!key?.subarray(0, prefix.length).equals(prefix)) continue
        const event = await codecs.deliveries.read(value)
        if (event) yield event
      }
    },
    newRequestId: (at) => requestIdOf(at, randomBytes(5).toString('hex')),
    now: Date.now,
    acquire: (key) =>
      GroupLease.acquire({
        kafka,
        groupId: `${config.groupId}.deletion.${key}`,
        topic: topics.erasures,
        sessionTimeoutMs: leaseMs,
        what: 'this request',
        busy: 'this request',
      }),
  }
  return {
    request: (given, options) => requestDeletion(ports, given, options),
    requestOnce: (given, key, options) => requestDeletionOnce(ports, given, key, options),
    resume: (requestId = null, options = {}) => resumeDeletions(ports, requestId, options),
    list: (signal) => listDeletions(ports, signal),
    show: (requestId, signal) => showDeletion(ports, requestId, signal),
    close: () => Promise.resolve(writer.close()),
  }
}
