import type { Destination } from '../../core/settings/settings.ts'
import type { ComputationActions } from '../computations/sync.ts'
import type { ReplayPorts } from '../dead-letters/replay.ts'
import type { Deletions } from '../deletions/deletions.ts'
import type { SampleResult } from '../destinations.ts'
import type { MessagePorts } from '../messages/message-facts.ts'
import type { Secrets } from '../secrets.ts'
import type { SettingsWriter } from '../settings-writer.ts'

/** What the admin API works with. */
export interface ConsoleServices {
  settings: SettingsWriter
  secrets: Secrets
  /** Sends one sample call to each URL of a destination, once. Throws `secrets_key`. */
  sendSample(destination: Destination): Promise<SampleResult[]>
  deadLetters: ReplayPorts
  computations: ComputationActions
  deletions: Deletions
  messages: MessagePorts
  /** Epoch milliseconds. */
  now(): number
}
