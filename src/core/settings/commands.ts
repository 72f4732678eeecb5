import type { ComputationKind, SyncMode } from '../audience/computations.ts'
import type { OptionsEdit } from './destination-options.ts'
import type { SecretPlace, SealedSecret } from './settings.ts'

/** A secret on its way in: `text` is checked and forgotten, what `seal` gives is what the event carries. */
export interface NewSecret {
  text: string
  fingerprint: string
  /** For one place. */
  seal(place: SecretPlace): SealedSecret
}

/** Sets one static header of one URL, or takes it away (`value: null`). The others stay as they are. */
export interface HeaderEdit {
  /** From 1, in the order of the destination's URLs after this command. */
  urlNumber: number
  name: string
  value: NewSecret | null
}

/** A secret that was sealed again: the same text, for the same place, under another key. */
export interface Resealed {
  place: SecretPlace
  from: SealedSecret
  to: SealedSecret
}

export type ComputationCommand = { kind: ComputationKind; id: string } & (
  | { type: 'create_computation'; name: string; sourceId: string }
  /** `at` is in epoch milliseconds. */
  | { type: 'start_sync'; syncId: string; mode: SyncMode; at: number }
  | { type: 'finish_sync'; syncId: string; at: number; entered: number; left: number }
  | { type: 'delete_computation' }
)

/**
 * What can be asked of the settings. In an update, what is undefined stays as it is; `urls` is the whole new list:
 * a URL that was in the old one keeps its id and headers, wherever it stands now.
 */
export type SettingsCommand =
  | ComputationCommand
  | { type: 'create_source'; id: string; name: string; writeKey: string; enabled: boolean }
  | { type: 'update_source'; id: string; name?: string | undefined; writeKey?: string | undefined }
  | { type: 'enable_source' | 'disable_source'; id: string }
  | {
      type: 'create_destination'
      id: string
      name: string
      sourceIds: string[]
      urls: string[]
      headers: HeaderEdit[]
      sharedSecret: NewSecret | null
      options?: OptionsEdit | undefined
      enabled: boolean
    }
  | {
      type: 'update_destination'
      id: string
      name?: string | undefined
      sourceIds?: string[] | undefined
      urls?: string[] | undefined
      headers?: HeaderEdit[] | undefined
      /** Replaces all that there are; null takes them away. */
      sharedSecret?: NewSecret | null | undefined
      /** Becomes the newest, beside the one that there is. */
      addSecret?: NewSecret | undefined
      /** Fingerprints. */
      removeSecrets?: string[] | undefined
      options?: OptionsEdit | undefined
    }
  | { type: 'enable_destination' | 'disable_destination'; id: string }
  /** Its secrets were sealed under another key; where `from` does not lie any more, nothing is done. */
  | { type: 'reseal_secrets'; id: string; resealed: Resealed[] }
  /** The forwarder got a 410 from this URL; `at` is in epoch milliseconds. */
  | { type: 'report_endpoint_gone'; destinationId: string; urlId: string; at: number }
