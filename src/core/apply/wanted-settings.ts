import type { ComputationKind } from '../audience/computations.ts'
import type { NewSecret } from '../settings/commands.ts'
import type { OptionsEdit } from '../settings/destination-options.ts'
import type { SealedSecret, Source } from '../settings/settings.ts'

/** A secret that a settings file refers to. */
export interface WantedSecret {
  /** The name of the variable that holds it. */
  variable: string
  /** Null when the variable is not set: then the secret that lies in its place stays. */
  given: GivenSecret | null
}

export interface GivenSecret {
  /** False also where that cannot be known, for a key is missing. */
  equals(sealed: SealedSecret): boolean
  /** Asked only for one that is to be written. Throws what a Sealer does. */
  make(): NewSecret
}

/** Without a write key the one that there is stays, or a new source gets `spareWriteKey`. */
export type WantedSource = Omit<Source, 'writeKey' | 'maxRate'> & {
  maxRate: string | null
  writeKey: string | null
  spareWriteKey: string
}

export interface WantedUrl {
  url: string
  headers: { name: string; value: WantedSecret }[]
}

export interface WantedDestination {
  id: string
  name: string
  enabled: boolean
  sourceIds: string[]
  urls: WantedUrl[]
  sharedSecret: WantedSecret | null
  earlierSecret: WantedSecret | null
  /** What is not given is the default. */
  options: OptionsEdit
}

export interface WantedComputation {
  id: string
  name: string
  sourceId: string
}

/** What a settings file says: each of them whole. What it does not name is left alone, or disabled where that is asked for. */
export interface WantedSettings {
  sources: WantedSource[]
  destinations: WantedDestination[]
  audiences: WantedComputation[]
  traits: WantedComputation[]
}

/** The lists of a settings file, by the kind of what is in them. */
export const computationLists = { audiences: 'audience', traits: 'trait' } as const satisfies Record<
  string,
  ComputationKind
>

export interface ApplyCommand {
  type: 'apply_settings'
  wanted: WantedSettings
  /** Disables sources and destinations that are not named. */
  prune: boolean
}
