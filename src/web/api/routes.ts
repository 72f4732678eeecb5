// What the page asks of the admin API: each route with what it answers, by the schemas that the API is made from. Types
// only: nothing of this is in the bundle.
import type { z } from 'zod'
import type {
  computationDeletedSchema,
  countedComputationSchema,
  syncProgress,
  syncReportSchema,
} from '../../operators/audiences/operations.ts'
import type { alertAnswersSchema, alertsSchema } from '../../operators/alerts/operations.ts'
import type { eventFieldsSchema, eventListSchema } from '../../operators/catalogue/operations.ts'
import type { ComputationView } from '../../operators/audiences/view.ts'
import type {
  auditProgressSchema,
  auditStateSchema,
  verdictSchema,
} from '../../operators/audit/operations.ts'
import type {
  deadLetterGroupsSchema,
  deadLetterSchema,
  deadLetterSummarySchema,
} from '../../operators/dead-letters/operations.ts'
import type {
  deletionProgressSchema,
  deletionReportSchema,
  deletionResumedSchema,
  deletionSchema,
  deletionStatusSchema,
  erasuresOfUserSchema,
} from '../../operators/deletions/operations.ts'
import type { DestinationCallsView } from '../../operators/destinations/calls.ts'
import type { destinationSchema } from '../../operators/destinations/destinations.ts'
import type { sampleOutcomes } from '../../operators/destinations/operations.ts'
import type { PreviewView } from '../../operators/destinations/preview.ts'
import type { Infrastructure } from '../../operators/infrastructure/infrastructure.ts'
import type { causeSchema, problemSchema, problemsSchema } from '../../operators/problems/operations.ts'
import type { dryRunSchema, jobSchema, statusSchema } from '../../operators/replay/operations.ts'
import type { ViolationView } from '../../operators/plans/operations.ts'
import type { ApplyReport } from '../../operators/settings/file.ts'
import type { exportSchema } from '../../operators/settings/operations.ts'
import type { HistoryEntry } from '../../operators/settings/history.ts'
import type { SourceView } from '../../operators/sources/sources.ts'
import type {
  attemptSchema,
  destinationStatsSchema,
  sourceStatsSchema,
  totalStatsSchema,
} from '../../operators/statistics/operations.ts'
import type {
  destinationOverviewSchema,
  overviewSchema,
  processSchema,
  systemSchema,
} from '../../operators/statistics/overview-operations.ts'
import type { regulationReportSchema, suppressionSchema } from '../../operators/suppression/operations.ts'
import type { loginWaysSchema, sessionSchema } from '../../operators/tokens/sessions.ts'
import type { createdTokenSchema, TokenView } from '../../operators/tokens/tokens.ts'
import type {
  indexProgress,
  messageBodySchema,
  messageCallsSchema,
  messageResponsesSchema,
  messageSchema,
  userMessageSchema,
} from '../../operators/why/operations.ts'

export interface ListPage<T> {
  data: T[]
  next: string | null
}

export type SessionAnswer = z.output<typeof sessionSchema>
type LoginWaysAnswer = z.output<typeof loginWaysSchema>
export type OverviewAnswer = z.output<typeof overviewSchema>
/** How a destination is now, with its figures and URLs. */
export type DestinationNowAnswer = z.output<typeof destinationOverviewSchema>
export type DestinationAnswer = z.output<typeof destinationSchema>
export type DestinationCallAnswer = DestinationCallsView['data'][number]
export type ProblemsAnswer = z.output<typeof problemsSchema>
export type CauseAnswer = z.output<typeof causeSchema>
export type ProblemAnswer = z.output<typeof problemSchema>
export type StatsAnswer = z.output<typeof destinationStatsSchema>
export type TotalStatsAnswer = z.output<typeof totalStatsSchema>
export type SourceStatsAnswer = z.output<typeof sourceStatsSchema>
export type ProcessAnswer = z.output<typeof processSchema>
export type ReplayAnswer = z.output<typeof jobSchema>
export type ReplayStatusAnswer = z.output<typeof statusSchema>
export type DryRunAnswer = z.output<typeof dryRunSchema>
export type MessageAnswer = z.output<typeof messageSchema>
export type MessageResponses = z.output<typeof messageResponsesSchema>
export type UserMessageAnswer = z.output<typeof userMessageSchema>
export type AttemptAnswer = z.output<typeof attemptSchema>
export type PreviewAnswer = PreviewView
export type SampleAnswer = z.output<typeof sampleOutcomes>
export type DeadLetterSummary = z.output<typeof deadLetterSummarySchema>
export type DeadLetterGroups = z.output<typeof deadLetterGroupsSchema>
export type WholeDeadLetter = z.output<typeof deadLetterSchema>
export type SystemAnswer = z.output<typeof systemSchema>
export type SourceAnswer = SourceView
export type EventListAnswer = z.output<typeof eventListSchema>
export type EventFieldsAnswer = z.output<typeof eventFieldsSchema>
export type IndexProgressLine = z.output<typeof indexProgress>
export type ViolationAnswer = ViolationView

export type AuditAnswer = z.output<typeof auditStateSchema>
export type VerdictAnswer = z.output<typeof verdictSchema>
export type AuditProgressLine = z.output<typeof auditProgressSchema>
export type ComputationAnswer = ComputationView
export type CountedComputationAnswer = z.output<typeof countedComputationSchema>
export type SyncAnswer = z.output<typeof syncReportSchema>
export type SyncProgressLine = z.output<typeof syncProgress>
export type DeletionAnswer = z.output<typeof deletionSchema>
export type DeletionStatusAnswer = z.output<typeof deletionStatusSchema>
export type DeletionProgressLine = z.output<typeof deletionProgressSchema>
export type SuppressionAnswer = z.output<typeof suppressionSchema>
export type InfrastructureAnswer = Infrastructure
export type HistoryAnswer = HistoryEntry
export type TokenAnswer = TokenView
export type ExportAnswer = z.output<typeof exportSchema>
export type ApplyAnswer = ApplyReport
export type PlannedDeletionAnswer = Omit<z.output<typeof deletionReportSchema>, 'id'>

export type AlertsAnswer = z.output<typeof alertsSchema>
export type AlertAnswers = z.output<typeof alertAnswersSchema>

/** Add the routes that a page needs. */
export interface Routes {
  'GET /session': SessionAnswer
  'GET /session/ways': LoginWaysAnswer
  'POST /session': SessionAnswer
  'DELETE /session': SessionAnswer
  'GET /overview': OverviewAnswer
  'GET /overview/destinations': ListPage<DestinationNowAnswer> & { total: number }
  'GET /problems': ProblemsAnswer
  'POST /problems/{id}/acknowledge': ProblemAnswer
  'GET /destinations': ListPage<DestinationAnswer>
  'POST /destinations': DestinationAnswer
  'POST /destinations/test': SampleAnswer
  'GET /destinations/{id}': DestinationAnswer
  'PATCH /destinations/{id}': DestinationAnswer
  'GET /destinations/{id}/stats': StatsAnswer
  'GET /destinations/{id}/calls': DestinationCallsView
  'GET /sources/{id}/stats': SourceStatsAnswer
  'POST /destinations/{id}/enable': DestinationAnswer
  'POST /destinations/{id}/disable': DestinationAnswer
  'POST /destinations/{id}/pause': DestinationAnswer
  'POST /destinations/{id}/resume': DestinationAnswer
  'POST /destinations/{id}/test': SampleAnswer
  'POST /destinations/{id}/preview': PreviewAnswer
  'GET /alerts': AlertsAnswer
  'POST /alerts': AlertsAnswer['destinations'][number]
  'PATCH /alerts/mail/{id}': AlertsAnswer['mails'][number]
  'DELETE /alerts/mail/{id}': { id: string; removed: true }
  'POST /alerts/test': AlertAnswers
  'GET /dead-letters': ListPage<DeadLetterSummary>
  'GET /dead-letters/groups': DeadLetterGroups
  'GET /dead-letters/{id}': WholeDeadLetter
  'GET /sources': ListPage<SourceAnswer>
  'GET /sources/{id}': SourceAnswer
  'GET /events': EventListAnswer
  'GET /events/fields': EventFieldsAnswer
  'GET /plan-violations': ListPage<ViolationAnswer>
  'GET /system': SystemAnswer
  /** A stream: see `send`. */
  'GET /sources/{id}/tail': never
  'GET /stats': TotalStatsAnswer
  'GET /replays': ListPage<ReplayAnswer>
  'POST /replays': ReplayStatusAnswer
  'POST /replays/dry-run': DryRunAnswer
  'GET /replays/{id}': ReplayStatusAnswer
  'POST /replays/{id}/pause': ReplayStatusAnswer
  'POST /replays/{id}/resume': ReplayStatusAnswer
  'POST /replays/{id}/cancel': ReplayStatusAnswer
  'GET /messages/{id}': MessageAnswer
  'GET /messages/{id}/body': z.output<typeof messageBodySchema>
  'GET /messages/{id}/responses': MessageResponses
  'POST /messages/calls': z.output<typeof messageCallsSchema>
  'GET /users/{id}/messages': ListPage<UserMessageAnswer>
  'GET /attempts': ListPage<AttemptAnswer>
  'GET /audit': AuditAnswer
  'DELETE /audit': { stopped: boolean }
  'POST /audit': VerdictAnswer
  'POST /sources': SourceAnswer
  'PATCH /sources/{id}': SourceAnswer
  'POST /sources/{id}/enable': SourceAnswer
  'POST /sources/{id}/disable': SourceAnswer
  'GET /audiences': ListPage<ComputationAnswer>
  'POST /audiences': ComputationAnswer
  'GET /audiences/{id}': CountedComputationAnswer
  'POST /audiences/{id}/sync': SyncAnswer
  'POST /audiences/{id}/change': SyncAnswer
  'DELETE /audiences/{id}': z.output<typeof computationDeletedSchema>
  'GET /traits': ListPage<ComputationAnswer>
  'POST /traits': ComputationAnswer
  'GET /traits/{id}': CountedComputationAnswer
  'POST /traits/{id}/sync': SyncAnswer
  'POST /traits/{id}/change': SyncAnswer
  'DELETE /traits/{id}': z.output<typeof computationDeletedSchema>
  'GET /deletions': ListPage<DeletionAnswer>
  'POST /deletions': z.output<typeof deletionReportSchema>
  'POST /deletions/dry-run': PlannedDeletionAnswer
  'GET /users/{id}/erasures': z.output<typeof erasuresOfUserSchema>
  'GET /deletions/{id}': DeletionStatusAnswer
  'POST /deletions/{id}/resume': z.output<typeof deletionResumedSchema>
  'GET /suppressions': ListPage<SuppressionAnswer>
  'POST /regulations': z.output<typeof regulationReportSchema>
  'GET /infrastructure': InfrastructureAnswer
  'GET /settings/export': ExportAnswer
  'POST /settings/apply': ApplyAnswer
  'GET /settings/history': ListPage<HistoryAnswer>
  'GET /tokens': ListPage<TokenAnswer>
  'POST /tokens': z.output<typeof createdTokenSchema>
  'POST /tokens/{id}/revoke': TokenAnswer
}

export type Route = keyof Routes
