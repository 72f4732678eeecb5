import type { Destination } from '../../core/settings/settings.ts'
import type { AuditRuns } from '../../operators/audit/runs.ts'
import type { ComputationActions } from '../../operators/audiences/sync.ts'
import type { DeadLetterStore } from '../../operators/dead-letters/dead-letters.ts'
import type { Deletions } from '../../operators/deletions/deletions.ts'
import type { SampleResult } from '../../operators/destinations/destinations.ts'
import type { InfrastructureView } from '../../operators/infrastructure/infrastructure.ts'
import type { ReadChanges } from '../../operators/settings/history.ts'
import type { LiveTail } from '../../operators/live/live-tail.ts'
import type { MessagePorts } from '../../operators/why/facts.ts'
import type { Replays } from '../../operators/replay/replays.ts'
import type { Secrets } from '../../operators/settings/secrets.ts'
import type { Suppressions } from '../../operators/suppression/suppressions.ts'
import type { SettingsWriter } from '../../operators/settings/writer.ts'
import type { StatisticsStore } from '../../operators/statistics/series.ts'

/** What operations work with. What takes a while to open is opened when it is first asked for. */
export interface ConsoleServices {
  settings: SettingsWriter
  secrets: Secrets
  /** Sends one sample call to each URL of a destination, once. Throws `secrets_key`. */
  sendSample(destination: Destination): Promise<SampleResult[]>
  deadLetters: DeadLetterStore
  computations(): Promise<ComputationActions>
  deletions: Deletions
  suppressions: Suppressions
  messages(): Promise<MessagePorts>
  readChanges: ReadChanges
  replays: Replays
  /** For how long what a pause holds is kept, in ms; null without a limit. */
  heldKeptMs(): Promise<number | null>
  statistics(): Promise<StatisticsStore>
  audits(): Promise<AuditRuns>
  infrastructure: InfrastructureView
  /** The topic of the calls, as heartbeats name it. */
  callsTopic: string
  /** Where senders reach the collectors; null if it is not known. */
  collectorUrl: string | null
  liveTail: LiveTail
  /** Epoch milliseconds. */
  now(): number
}
