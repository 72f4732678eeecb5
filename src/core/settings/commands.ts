import type { Reach } from '../access/reach.ts'
import type { Role } from '../access/roles.ts'
import type { ComputationKind, SyncMode } from '../audience/computations.ts'
import type { MailAlertCommand } from '../operational/mail-alerts.ts'
import type { AcknowledgementCommand } from '../problems/acknowledgement.ts'
import type { ReplayCommand } from '../replay/replay-events.ts'
import type { OptionsEdit } from './destination-options.ts'
import type { TrackingPlan } from '../tracking-plan/tracking-plan.ts'
import type { CertificateFacts, SecretPlace, SealedSecret } from './settings.ts'
import type { SourceOptionsEdit } from './source-options.ts'

/** A secret on its way in: `text` is checked and forgotten, what `seal` gives is what the event carries. */
export interface NewSecret {
  text: string
  fingerprint: string
  /** For one place. */
  seal(place: SecretPlace): SealedSecret
}

/** Certificates in PEM form, of which it is known that they load. */
export interface NewCertificates extends NewSecret {
  certificates: CertificateFacts[]
}

/** Parts of a login to set; null takes one away. */
export interface LoginEdit {
  clientCert?: NewCertificates | null | undefined
  clientKey?: NewSecret | null | undefined
  ca?: NewCertificates | null | undefined
  oauthClientSecret?: NewSecret | null | undefined
}

/** Sets one static header of one URL, or takes it away (`value: null`). The others stay as they are. */
export interface HeaderEdit {
  /** From 1, in the order of the destination's URLs after this command. */
  urlNumber: number
  name: string
  value: NewSecret | null
}

/** Sets one secret of the templates, or takes it away (`value: null`). The others stay as they are. */
export interface TemplateSecretEdit {
  name: string
  value: NewSecret | null
}

/** The active secrets, each a new one or one of those that there are. */
export interface SecretPair {
  sharedSecret: NewSecret | SealedSecret | null
  earlierSecret: NewSecret | SealedSecret | null
}

/** A secret that was sealed again: the same text, for the same place, under another key. */
export interface Resealed {
  place: SecretPlace
  from: SealedSecret
  to: SealedSecret
}

/** `hash` as AccessToken has it; `at` is in epoch milliseconds. */
export type TokenCommand =
  | { type: 'create_token'; id: string; role: Role; only: Reach; hash: string; at: number }
  | { type: 'revoke_token'; id: string; at: number }

export type ComputationCommand = { kind: ComputationKind; id: string } & (
  | { type: 'create_computation'; name: string; sourceId: string }
  /** `at` is in epoch milliseconds. */
  | { type: 'start_sync'; syncId: string; mode: SyncMode; at: number }
  | { type: 'finish_sync'; syncId: string; at: number; entered: number; left: number }
  | { type: 'delete_computation' }
)

export type TrackingPlanCommand =
  | ({ type: 'create_plan' } & Pick<TrackingPlan, 'id' | 'name' | 'events' | 'unknownEvents'>)
  | {
      type: 'update_plan'
      id: string
      name?: string | undefined
      /** All of them. */
      events?: TrackingPlan['events'] | undefined
      unknownEvents?: TrackingPlan['unknownEvents'] | undefined
    }
  | { type: 'remove_plan'; id: string }

/**
 * What can be asked of the settings. In an update, what is undefined stays as it is; `urls` is the whole new list:
 * a URL that was in the old one keeps its id and headers, wherever it stands now.
 */
export type SettingsCommand =
  | ComputationCommand
  | TokenCommand
  | TrackingPlanCommand
  | ({
      type: 'create_source'
      id: string
      name: string
      writeKey: string
      enabled: boolean
    } & SourceOptionsEdit)
  | ({
      type: 'update_source'
      id: string
      name?: string | undefined
      writeKey?: string | undefined
    } & SourceOptionsEdit)
  | { type: 'enable_source' | 'disable_source'; id: string }
  | {
      type: 'create_destination'
      id: string
      name: string
      sourceIds: string[]
      urls: string[]
      headers: HeaderEdit[]
      sharedSecret: NewSecret | null
      login?: LoginEdit | undefined
      templateSecrets?: TemplateSecretEdit[] | undefined
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
      /** In place of the three above: both secrets as they are to be. */
      secretPair?: SecretPair | undefined
      login?: LoginEdit | undefined
      templateSecrets?: TemplateSecretEdit[] | undefined
      options?: OptionsEdit | undefined
    }
  | { type: 'enable_destination' | 'disable_destination'; id: string }
  /** `pauseId` is new; `until` and `at` are in epoch ms. A destination that is paused keeps its pause, with this end. */
  | { type: 'pause_destination'; id: string; pauseId: string; at: number; until: number | null }
  /** With `pauseId` only where that pause still lasts: of several processes that end it, one does. */
  /** `rate`: of the replay of what was held, a second; null or absent: none. */
  | { type: 'resume_destination'; id: string; pauseId: string | null; at: number; rate?: number | null }
  | ReplayCommand
  | AcknowledgementCommand
  | MailAlertCommand
  /** Its secrets were sealed under another key; where `from` does not lie any more, nothing is done. */
  | { type: 'reseal_secrets'; id: string; resealed: Resealed[] }
  /** The forwarder got a 410 from this URL; `at` is in epoch milliseconds. */
  | { type: 'report_endpoint_gone'; destinationId: string; urlId: string; at: number }

/** A request that its sender may repeat under one key. Both are digests without a `/`. */
export interface RequestKey {
  /** Of the key, and of what it is for. */
  key: string
  /** Of what was asked. */
  request: string
}

/** A command's id in the settings log: unique, and followed by its request's key where it has one. */
export function commandIdOf(unique: string, request: RequestKey | null): string {
  return request === null ? unique : `${unique}/${request.key}/${request.request}`
}

export function requestKeyOf(commandId: string): RequestKey | null {
  const [, key, request, ...rest] = commandId.split('/')
  return key && request && rest.length === 0 ? { key, request } : null
}
