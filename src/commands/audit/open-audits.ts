import { openAuditSource } from '../../adapters/kafka/read/audit-source.ts'
import { SqliteKeySet } from '../../adapters/store/key-set.ts'
import { AuditRuns, type AuditStore } from '../../console/audit/audit-runs.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import type { Context } from '../context.ts'
import { sendEvent } from '../operational/send-event.ts'

/** Audits for the API. */
export const openAudits = (
  deployment: Context,
  store: AuditStore,
  settings: { state: Pick<SettingsState, 'sources' | 'destinations'> },
): AuditRuns =>
  new AuditRuns({
    source: () => openAuditSource({ ...deployment, groupId: deployment.config.groupId }),
    newKeySet: () => new SqliteKeySet(),
    store,
    sendEvent: (event) => sendEvent(deployment, settings.state, event),
    log: deployment.log,
    now: Date.now,
  })
