import type { ErasureIndex } from '../core/erasure/erasures.ts'
import type { Destination } from '../core/settings/settings.ts'
import type { Mailer } from './alerts/mail.ts'
import type { AuditRuns } from './audit/runs.ts'
import type { ComputationActions } from './audiences/sync.ts'
import type { EventCatalogue } from './catalogue/catalogue.ts'
import type { DeadLetterStore } from './dead-letters/dead-letters.ts'
import type { Deletions } from './deletions/deletions.ts'
import type { SampleResult, SampleTerms } from './destinations/destinations.ts'
import type { NewestCalls } from './destinations/preview.ts'
import type { InfrastructureView } from './infrastructure/infrastructure.ts'
import type { ReadChanges } from './settings/history.ts'
import type { LiveTail } from './live/live-tail.ts'
import type { MessagePorts } from './why/facts.ts'
import type { DraftPlan, SchemaRefusal } from './plans/plans.ts'
import type { Replays } from './replay/replays.ts'
import type { Secrets } from './settings/secrets.ts'
import type { Suppressions } from './suppression/suppressions.ts'
import type { SettingsWriter } from './settings/writer.ts'
import type { StatisticsStore } from './statistics/series.ts'
import type { WaitingInTiers } from './statistics/waiting.ts'

/** What operations work with. What takes a while to open is opened when it is first asked for. */
export interface ConsoleServices {
  settings: SettingsWriter
  secrets: Secrets
  /** Of schemas in tracking plans. */
  schemaRefusal: SchemaRefusal
  draftPlan: DraftPlan
  /** Sends a call to each URL of a destination, once. Throws `secrets_key`, and Unrenderable. */
  sendSample(destination: Destination, terms?: SampleTerms): Promise<SampleResult[]>
  newestCalls: NewestCalls
  deadLetters: DeadLetterStore
  computations(): Promise<ComputationActions>
  deletions: Deletions
  /** Up to now. */
  erasures(stop?: AbortSignal): Promise<Pick<ErasureIndex, 'erasedAt' | 'covers'>>
  suppressions: Suppressions
  messages(): Promise<MessagePorts>
  catalogue(): Promise<EventCatalogue>
  readChanges: ReadChanges
  replays: Replays
  /** For how long what a pause holds is kept, in ms; null without a limit. */
  heldKeptMs(): Promise<number | null>
  statistics(): Promise<StatisticsStore>
  waiting: WaitingInTiers
  audits(): Promise<AuditRuns>
  infrastructure: InfrastructureView
  /** The topic of the calls, as heartbeats name it. */
  callsTopic: string
  /** Where senders reach the collectors; null if it is not known. */
  collectorUrl: string | null
  liveTail: LiveTail
  /** Null where this process has no mail server. */
  mailer: Mailer | null
  /** Operational events that are still to be mailed; null in a process that mails none. */
  mailsWaiting(): number | null
  /** Epoch milliseconds. */
  now(): number
}
