import type { NewSecret, Resealed, SecretPair } from './commands.ts'
import type { Fault } from '../decision.ts'
import { editedLogin, loginSecrets, resealedLogin, type LoginChange } from './login.ts'
import {
  headerPlace,
  loginPlace,
  sharedSecretPlace,
  templateSecretPlace,
  type Destination,
  type SealedSecret,
  type SecretPlace,
  type TemplateSecret,
} from './settings.ts'

/** A destination's resealed secrets. What is undefined stays as it is. */
export interface ResealedPlaces {
  sharedSecret?: SealedSecret | undefined
  earlierSecret?: SealedSecret | undefined
  login?: LoginChange | undefined
  /** All of them, where any was resealed. */
  templateSecrets?: TemplateSecret[] | undefined
  headers: { urlId: string; name: string; value: SealedSecret }[]
}

export const maxSecretBytes = 256
/** So that receivers can change over from one to the other, one by one. */
export const maxActiveSecrets = 2

type Secrets = Pick<Destination, 'sharedSecret' | 'earlierSecret'>

/** Shared secrets that are in use, the newest first: that one signs X-Signature. */
export function activeSecrets({ sharedSecret, earlierSecret }: Secrets): SealedSecret[] {
  return [sharedSecret, earlierSecret].filter((secret) => secret !== null)
}

/** Everything of a destination that is kept encrypted, each with its place. */
export function placedSecrets(destination: Destination): { place: SecretPlace; sealed: SealedSecret }[] {
  const { id, urls, login, templateSecrets, options } = destination
  const owner = { id, tokenUrl: options.oauthTokenUrl }
  return [
    ...activeSecrets(destination).map((sealed) => ({ place: sharedSecretPlace(id), sealed })),
    ...loginSecrets(login).map(({ name, sealed }) => ({ place: loginPlace(owner, name), sealed })),
    ...templateSecrets.map((each) => ({ place: templateSecretPlace(id, each), sealed: each.value })),
    ...urls.flatMap(({ url, headers }) =>
      headers.map(({ name, value }) => ({ place: headerPlace(id, url, name), sealed: value })),
    ),
  ]
}

export interface SecretsEdit {
  /** Replaces whatever there was; null leaves none. */
  sharedSecret?: NewSecret | null | undefined
  /** Becomes the newest, beside the one that there is. */
  addSecret?: NewSecret | undefined
  /** By fingerprint; taken away before another one is added. */
  removeSecrets?: string[] | undefined
  /** In place of the three above. */
  secretPair?: SecretPair | undefined
}

/** The secrets after an edit; null where it does not touch them. */
export function editSecrets(
  edit: SecretsEdit,
  current: Secrets,
  destinationId: string,
): { secrets: Secrets | null; faults: Fault[] } {
  const { sharedSecret, addSecret, removeSecrets = [], secretPair } = edit
  const place = sharedSecretPlace(destinationId)
  const faults: Fault[] = []
  const refuse = (code: Fault['code'], field: string, message: string) =>
    faults.push({ code, field, message })
  for (const [field, secret] of Object.entries({ sharedSecret, addSecret, ...secretPair })) {
    const bytes = secret && 'text' in secret ? new TextEncoder().encode(secret.text).length : 1
    if (bytes < 1 || bytes > maxSecretBytes)
      refuse('usage', field, `the shared secret is ${bytes} bytes long, 1-${maxSecretBytes} are allowed`)
  }
  if (secretPair) return { secrets: sealedPair(secretPair, place, refuse), faults }
  if (sharedSecret !== undefined) {
    if (addSecret || removeSecrets.length > 0)
      refuse('usage', 'sharedSecret', 'a secret either replaces those that there are or goes beside them')
    return { secrets: { sharedSecret: sharedSecret?.seal(place) ?? null, earlierSecret: null }, faults }
  }
  if (!addSecret && removeSecrets.length === 0) return { secrets: null, faults }
  let active = activeSecrets(current)
  for (const removed of removeSecrets) {
    const left = active.filter(({ fingerprint }) => fingerprint !== removed)
    if (left.length === active.length)
      refuse(
        'not_found',
        'removeSecrets',
        `no shared secret with the fingerprint ${JSON.stringify(removed)} is active`,
      )
    active = left
  }
  if (addSecret) {
    if (active.some(({ fingerprint }) => fingerprint === addSecret.fingerprint))
      refuse('conflict', 'addSecret', 'that shared secret is active already')
    else if (active.length >= maxActiveSecrets)
      refuse(
        'conflict',
        'addSecret',
        `${maxActiveSecrets} shared secrets are active (fingerprints ` +
          `${active.map(({ fingerprint }) => fingerprint).join(', ')}): take one away first`,
      )
    active = [addSecret.seal(place), ...active]
  }
  return { secrets: { sharedSecret: active[0] ?? null, earlierSecret: active[1] ?? null }, faults }
}

function sealedPair(
  { sharedSecret, earlierSecret }: SecretPair,
  place: SecretPlace,
  refuse: (code: Fault['code'], field: string, message: string) => void,
): Secrets {
  if (earlierSecret !== null && sharedSecret === null)
    refuse(
      'usage',
      'earlierSecret',
      'an earlier secret stays active beside a shared secret, and there is none',
    )
  if (earlierSecret !== null && earlierSecret.fingerprint === sharedSecret?.fingerprint)
    refuse('usage', 'earlierSecret', 'the earlier secret is the same as the shared secret')
  const sealed = (secret: NewSecret | SealedSecret | null) =>
    secret && 'seal' in secret ? secret.seal(place) : secret
  return { sharedSecret: sealed(sharedSecret), earlierSecret: sealed(earlierSecret) }
}

/**
 * The place where a resealed secret belongs now; null when there is none. A secret that was changed meanwhile is left alone:
 * its writer had the current keys.
 */
export function resealedPlaces(
  destination: Destination,
  resealed: readonly Resealed[],
): ResealedPlaces | null {
  const { id } = destination
  const to = (at: SecretPlace, sealed: SealedSecret | null) =>
    resealed.find(({ place, from }) => place === at && isSame(from, sealed))?.to
  const owner = { id, tokenUrl: destination.options.oauthTokenUrl }
  const login = resealedLogin(destination.login, (name, sealed) => to(loginPlace(owner, name), sealed))
  const shared = sharedSecretPlace(id)
  const templateSecrets = destination.templateSecrets.map((each) => {
    const value = to(templateSecretPlace(id, each), each.value)
    return value ? { ...each, value } : each
  })
  const isTemplateSecret = templateSecrets.some((each, at) => each !== destination.templateSecrets[at])
  const places: ResealedPlaces = {
    sharedSecret: to(shared, destination.sharedSecret),
    earlierSecret: to(shared, destination.earlierSecret),
    ...(login && { login }),
    ...(isTemplateSecret && { templateSecrets }),
    headers: destination.urls.flatMap((url) =>
      url.headers.flatMap(({ name, value }) => {
        const sealed = to(headerPlace(id, url.url, name), value)
        return sealed ? [{ urlId: url.id, name, value: sealed }] : []
      }),
    ),
  }
  const { sharedSecret, earlierSecret, headers } = places
  const isAny = sharedSecret || earlierSecret || login || isTemplateSecret || headers.length > 0
  return isAny ? places : null
}

export function withResealed(destination: Destination, places: ResealedPlaces): Destination {
  return {
    ...destination,
    sharedSecret: places.sharedSecret ?? destination.sharedSecret,
    earlierSecret: places.earlierSecret ?? destination.earlierSecret,
    login: editedLogin(destination.login, places.login ?? {}),
    templateSecrets: places.templateSecrets ?? destination.templateSecrets,
    urls: destination.urls.map((url) => ({
      ...url,
      headers: url.headers.map((header) => {
        const place = places.headers.find(({ urlId, name }) => urlId === url.id && name === header.name)
        return place ? { ...header, value: place.value } : header
      }),
    })),
  }
}

function isSame(one: SealedSecret, other: SealedSecret | null): boolean {
  return other !== null && one.keyId === other.keyId && one.iv === other.iv && one.tag === other.tag
}
