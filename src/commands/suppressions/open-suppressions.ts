import { readRange } from '../../adapters/kafka/read/read-range.ts'
import { SuppressionWriter } from '../../adapters/kafka/write/suppression-writer.ts'
import { suppressUsers, unsuppressUsers } from '../../console/suppressions/change.ts'
import { allSuppressions, pageOfSuppressions } from '../../console/suppressions/listing.ts'
import type { SuppressionPorts } from '../../console/suppressions/suppression-records.ts'
import type { Suppressions } from '../../console/suppressions/suppressions.ts'
import { suppressedBy } from '../../core/suppression/suppressions.ts'
import type { Context } from '../context.ts'

export interface OpenSuppressions extends Suppressions {
  close(): void
}

/**
 * Suppressed users, for commands and API alike. Asks for nothing yet.
 *
 * @param known resolves once all suppressions are known that there are at the call
 */
export function openSuppressions(
  { kafka, log, topics, codecs }: Context,
  settings: SuppressionPorts['settings'],
  known: SuppressionPorts['known'],
): OpenSuppressions {
  const topic = topics.suppressions
  const writer = new SuppressionWriter({ kafka, topic, codec: codecs.suppressions, log })
  const ports: SuppressionPorts = {
    settings,
    known,
    write: (changes) => writer.write(changes),
    async *read(from, signal) {
      for await (const record of readRange({ kafka, topic, log, from, signal })) {
        const whose = suppressedBy(record.key?.toString('utf8') ?? '')
        if (whose === null || record.value === null) continue
        yield { ...whose, offset: record.offset, appendedAt: record.timestamp }
      }
    },
    now: Date.now,
  }
  return {
    suppress: (given, options) => suppressUsers(ports, given, options),
    unsuppress: (given, options) => unsuppressUsers(ports, given, options),
    page: (from, limit, userId, signal) => pageOfSuppressions(ports, from, limit, userId, signal),
    all: (userId, signal) => allSuppressions(ports, userId, signal),
    close: () => writer.close(),
  }
}
