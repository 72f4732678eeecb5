import { openAuditSource } from '../../src/adapters/kafka/read/audit-source.ts'
import { SqliteKeySet } from '../../src/adapters/store/key-set.ts'
import { audit } from '../../src/console/audit/audit.ts'
import type { AuditReport } from '../../src/core/ledger/audit-report.ts'
import type { Deployment } from './deployment/deployment.ts'
import { silentLog } from './silent-log.ts'

/** What `postrider audit` finds in the deployment now. Forwarders may run. */
export function auditOf(
  { kafka, topics, config, codecs }: Deployment,
  { since = null, until = null }: { since?: number | null; until?: number | null } = {},
): Promise<AuditReport> {
  const log = silentLog
  const source = openAuditSource({ kafka, topics, groupId: config.groupId, codecs, log })
  return audit(source, () => new SqliteKeySet(), { since, until })
}
