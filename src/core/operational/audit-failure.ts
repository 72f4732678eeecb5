import type { AuditReport } from '../ledger/audit-report.ts'
import type { OperationalEvent } from './operational-event.ts'

/** As many faults an event names. */
const maxNamed = 10

/** What an audit found is one event however often it is found. Null for an audit that found nothing. */
export function auditFailure(
  report: Pick<AuditReport, 'ok' | 'faults' | 'destinations'>,
  at: number,
): OperationalEvent | null {
  if (report.ok) return null
  const unbalanced = report.destinations.filter(({ balance }) => balance !== 0)
  const faults = report.faults.map(({ kind, topic, partition, first, last }) => ({
    kind,
    topic,
    partition,
    first,
    last,
  }))
  const balances = unbalanced.map(({ destinationId, balance }) => ({ destinationId, balance }))
  return {
    name: 'Audit Failed',
    identity: JSON.stringify([faults, balances]),
    at,
    destination: null,
    properties: {
      count: faults.length,
      faults: faults.slice(0, maxNamed),
      unbalanced: balances.slice(0, maxNamed),
    },
  }
}
