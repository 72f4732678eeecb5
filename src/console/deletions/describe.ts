// Deletion requests as JSON, for the admin API and `--json` alike.
import type { DeletionReport, DeletionStatus, DeletionSummary, ResumeReport } from './ports.ts'

export const summaryOf = ({ requestId, at, users, state, sources }: DeletionSummary) => ({
  id: requestId,
  requestedAt: new Date(at).toISOString(),
  users,
  state,
  sources,
})

export const statusOf = (status: DeletionStatus) => ({ ...summaryOf(status), progress: status.progress })

export const reportOf = ({ requestId, ...report }: DeletionReport) => ({ id: requestId, ...report })

export const resumedOf = ({ requestId, ...report }: ResumeReport) => ({ id: requestId, ...report })
