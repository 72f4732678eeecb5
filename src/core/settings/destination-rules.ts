import { sourceOf } from '../call/built-in-source.ts'
import { accepted, refused, idFaults, nameFaults, fault, faultIf, type Fault } from '../decision.ts'
import { canonicalUrl, urlFaults, type HostRefusal } from '../delivery/endpoint-url.ts'
import { ownProxyFaults } from '../delivery/proxy-url.ts'
import {
  headerNameFaults,
  headerSetFaults,
  headerValueFaults,
  isHeaderValue,
} from '../delivery/static-headers.ts'
import { parseRequestUrl, requestUrlFaults } from '../shape/request-url.ts'
import { secretIn } from '../shape/secret-holes.ts'
import { hasHoles, holeFaults, templateHoles } from '../shape/text-template.ts'
import type { HeaderEdit, SettingsCommand } from './commands.ts'
import {
  defaultOptions,
  editOptions,
  givenOptions,
  optionsConflicts,
  optionsFaults,
  ownScheduleFaults,
  withDependents,
} from './destination-options.ts'
import type { DeploymentRules } from './deployment-rules.ts'
import type { Decision } from './events.ts'
import { editedLogin, editLogin } from './login.ts'
import { editSecrets } from './secrets.ts'
import { editTemplateSecrets } from './template-secrets.ts'
import {
  headerPlace,
  type Destination,
  type EndpointSettings,
  type SealedSecret,
  type SecretPlace,
  type SettingsAggregate,
} from './settings.ts'

type Create = Extract<SettingsCommand, { type: 'create_destination' }>
type Update = Extract<SettingsCommand, { type: 'update_destination' }>

export const maxUrls = 5

const unsigned = { sharedSecret: null, earlierSecret: null }

export function decideDestinationCreate(
  command: Create,
  state: SettingsAggregate,
  { hostRefusal, retryPolicy }: DeploymentRules,
): Decision {
  const { id, name, sourceIds, enabled, sharedSecret } = command
  const options = withDependents(command.options ?? {})
  const edited = editUrls(
    { id, urls: command.urls, headers: command.headers, current: [], hostRefusal },
    state,
  )
  const signing = editSecrets({ sharedSecret }, unsigned, id)
  const login = editLogin(command.login ?? {}, { id, tokenUrl: options.oauthTokenUrl ?? null })
  const ofTemplates = editTemplateSecrets({
    ...{ id, edits: command.templateSecrets ?? [], current: [], urls: edited.urls },
    ...{ body: options.body ?? null, code: 'usage' },
  })
  const isTaken = state.destinations.has(id)
  const faults = [
    ...idFaults(id),
    ...faultIf(isTaken, 'conflict', 'id', `destination "${id}" exists already, and ids are never reused`),
    ...nameFaults(name),
    ...sourceFaults(sourceIds, state),
    ...edited.faults,
    ...signing.faults,
    ...login.faults,
    ...ofTemplates.faults,
    ...optionsFaults(options),
    ...ownScheduleFaults(options, defaultOptions, retryPolicy),
    ...tokenUrlFaults(options.oauthTokenUrl, hostRefusal),
    ...optionsConflicts('usage', editOptions(defaultOptions, options), {
      isSigned: sharedSecret !== null,
      hasHoles: fillsHoles(edited.urls),
      hasClientSecret: Boolean(login.change?.oauthClientSecret),
      hasAuthorization: hasAuthorization(edited.urls),
    }),
  ]
  if (faults.length > 0) return { accepted: false, faults }
  return accepted({
    type: 'destination_created',
    destination: {
      id,
      name,
      type: 'Webhooks',
      sourceIds,
      urls: edited.urls,
      sharedSecret: signing.secrets?.sharedSecret ?? null,
      ...(login.change && { login: login.change }),
      ...(ofTemplates.secrets && { templateSecrets: ofTemplates.secrets }),
      ...(command.options && { options: givenOptions(options) }),
      enabled,
    },
  })
}

export function decideDestinationUpdate(
  command: Update,
  state: SettingsAggregate,
  { hostRefusal, retryPolicy }: DeploymentRules,
): Decision {
  const { id, name, sourceIds, urls } = command
  const options = withDependents(command.options ?? {})
  const headers = command.headers ?? []
  const current = state.destinations.get(id)
  if (!current) return refused('not_found', 'id', `destination "${id}" does not exist`)
  const urlsChange = urls !== undefined || headers.length > 0
  const optionsChange = Object.keys(givenOptions(options)).length > 0
  const { secrets, faults: secretFaults } = editSecrets(command, current, id)
  const losesOAuth = options.oauthTokenUrl === null && current.login.oauthClientSecret !== null
  const { oauthTokenUrl: tokenUrl = current.options.oauthTokenUrl } = options
  const login = editLogin(
    { ...command.login, ...(losesOAuth && { oauthClientSecret: null }) },
    { id, tokenUrl },
  )
  // It was meant for the one that there was.
  const isSecretElsewhere =
    current.login.oauthClientSecret !== null &&
    !login.change?.oauthClientSecret &&
    tokenUrl !== null &&
    canonicalUrl(tokenUrl) !== canonicalUrl(current.options.oauthTokenUrl ?? '')
  const changes = [name, sourceIds].some((given) => given !== undefined) || urlsChange || optionsChange
  const edited = editUrls(
    { id, urls: urls ?? current.urls.map(({ url }) => url), headers, current: current.urls, hostRefusal },
    state,
  )
  const { body = current.options.body } = options
  const ofTemplates = editTemplateSecrets({
    ...{ id, edits: command.templateSecrets ?? [], current: current.templateSecrets },
    ...{ urls: urlsChange ? edited.urls : current.urls, body, code: 'conflict' },
  })
  const hint = 'give a name, sources, URLs, headers, a secret, a login or an option'
  const faults = [
    ...faultIf(
      !changes && !secrets && !login.change && !ofTemplates.secrets,
      'usage',
      'id',
      `nothing to change: ${hint}`,
    ),
    ...(name === undefined ? [] : nameFaults(name)),
    ...(sourceIds === undefined ? [] : sourceFaults(sourceIds, state)),
    ...(urlsChange ? edited.faults : []),
    ...secretFaults,
    ...login.faults,
    ...(urlsChange || optionsChange || ofTemplates.secrets ? ofTemplates.faults : []),
    ...optionsFaults(options),
    ...ownScheduleFaults(options, current.options, retryPolicy),
    ...tokenUrlFaults(options.oauthTokenUrl, hostRefusal),
    ...faultIf(
      isSecretElsewhere,
      'usage',
      'oauthClientSecret',
      'another token URL needs the client secret again: it is bound to the one that there was',
    ),
    ...(secrets || optionsChange || login.change || urlsChange
      ? optionsConflicts('conflict', editOptions(current.options, options), {
          isSigned: (secrets ?? current).sharedSecret !== null,
          hasHoles: fillsHoles(urlsChange ? edited.urls : current.urls),
          hasClientSecret: editedLogin(current.login, login.change ?? {}).oauthClientSecret !== null,
          hasAuthorization: hasAuthorization(urlsChange ? edited.urls : current.urls),
        })
      : []),
  ]
  if (faults.length > 0) return { accepted: false, faults }
  return accepted({
    type: 'destination_updated',
    id,
    ...(name === undefined ? {} : { name }),
    ...(sourceIds === undefined ? {} : { sourceIds }),
    ...(urlsChange ? { urls: edited.urls } : {}),
    ...(secrets && { sharedSecret: secrets.sharedSecret }),
    ...(secrets?.earlierSecret && { earlierSecret: secrets.earlierSecret }),
    ...(login.change && { login: login.change }),
    ...(ofTemplates.secrets && { templateSecrets: ofTemplates.secrets }),
    ...(optionsChange && { options: givenOptions(options) }),
  })
}

const hasAuthorization = (urls: readonly EndpointSettings[]): boolean =>
  urls.some(({ headers }) => headers.some(({ name }) => name.toLowerCase() === 'authorization'))

function tokenUrlFaults(tokenUrl: string | null | undefined, hostRefusal: HostRefusal): Fault[] {
  const host = tokenUrl ? URL.parse(tokenUrl)?.hostname : undefined
  const refusal = host === undefined ? null : hostRefusal(host)
  return refusal === null ? [] : [fault('usage', 'oauthTokenUrl', `the token URL: ${refusal}`)]
}

function sourceFaults(sourceIds: readonly string[], state: SettingsAggregate): Fault[] {
  if (sourceIds.length === 0) return [fault('usage', 'sourceIds', 'at least one source is needed')]
  return [
    ...repeated(sourceIds).map((id) => fault('usage', 'sourceIds', `source "${id}" is named twice`)),
    ...[...new Set(sourceIds)]
      .filter((id) => !sourceOf(state, id))
      .map((id) => fault('not_found', 'sourceIds', `source "${id}" does not exist`)),
  ]
}

interface UrlEdit {
  id: string
  urls: readonly string[]
  headers: readonly HeaderEdit[]
  current: readonly EndpointSettings[]
  hostRefusal: HostRefusal
}

/**
 * The new list of URLs. One that was there keeps its id and headers; any other gets an id that this destination
 * never had, and no headers: a header's value must not wander to a host that it was not meant for.
 */
function editUrls(edit: UrlEdit, state: SettingsAggregate): { urls: EndpointSettings[]; faults: Fault[] } {
  const faults: Fault[] = []
  if (edit.urls.length === 0) faults.push(fault('usage', 'urls', 'at least one URL is needed'))
  if (edit.urls.length > maxUrls)
    faults.push(fault('usage', 'urls', `${edit.urls.length} URLs are given, at most ${maxUrls} are allowed`))
  edit.urls.forEach((url, index) => {
    for (const phrase of requestUrlFaults(url))
      faults.push(fault('usage', 'urls', `URL ${index + 1} ${phrase}`))
    const first = edit.urls.findIndex((other) => canonicalUrl(other) === canonicalUrl(url))
    if (first < index) faults.push(fault('usage', 'urls', `URL ${index + 1} is the same as URL ${first + 1}`))
    // One that is there already was allowed when it was set, maybe by a process that allows more.
    const isKept = edit.current.some((endpoint) => canonicalUrl(endpoint.url) === canonicalUrl(url))
    const host = isKept ? undefined : URL.parse(url)?.hostname
    const refusal = host === undefined ? null : edit.hostRefusal(host)
    if (refusal !== null) faults.push(fault('usage', 'urls', `URL ${index + 1}: ${refusal}`))
  })
  let made = state.endpointsMade.get(edit.id) ?? 0
  const urls = edit.urls.map((url): EndpointSettings => {
    const kept = edit.current.find((endpoint) => canonicalUrl(endpoint.url) === canonicalUrl(url))
    return kept ? { id: kept.id, url, headers: kept.headers } : { id: `u${++made}`, url, headers: [] }
  })
  faults.push(...headerFaults(edit.headers, urls.length))
  if (faults.length > 0) return { urls, faults }
  const withHeaders = urls.map((url, index) => ({
    ...url,
    headers: editHeaders(
      url.headers,
      edit.headers.filter(({ urlNumber }) => urlNumber === index + 1),
      (name) => headerPlace(edit.id, url.url, name),
    ),
  }))
  withHeaders.forEach(({ headers }, index) => {
    const sizes = headers.map(({ name, value }) => ({ name, valueBytes: sealedByteLength(value) }))
    for (const phrase of headerSetFaults(sizes))
      faults.push(fault('usage', 'headers', `URL ${index + 1} ${phrase}`))
  })
  return { urls: withHeaders, faults }
}

function headerFaults(edits: readonly HeaderEdit[], urlCount: number): Fault[] {
  const faults: Fault[] = []
  for (const { urlNumber, name, value } of edits) {
    const label = `header ${JSON.stringify(name)} of URL ${urlNumber}`
    if (!Number.isInteger(urlNumber) || urlNumber < 1 || urlNumber > urlCount)
      faults.push(
        fault('usage', 'headers', `${label}: there is no such URL, they are numbered from 1 to ${urlCount}`),
      )
    const phrases = [
      ...headerNameFaults(name),
      ...(value === null ? [] : [...headerValueFaults(value.text), ...holeFaults(value.text)]),
    ]
    for (const phrase of phrases) faults.push(fault('usage', 'headers', `${label} ${phrase}`))
  }
  const keys = edits.map(({ urlNumber, name }) => `${name.toLowerCase()} of URL ${urlNumber}`)
  for (const key of repeated(keys)) faults.push(fault('usage', 'headers', `header ${key} is given twice`))
  return faults
}

function editHeaders(
  current: EndpointSettings['headers'],
  edits: readonly HeaderEdit[],
  placeOf: (name: string) => SecretPlace,
): EndpointSettings['headers'] {
  const edited = new Set(edits.map(({ name }) => name.toLowerCase()))
  return [
    ...current.filter(({ name }) => !edited.has(name.toLowerCase())),
    ...edits.flatMap(({ name, value }) =>
      value === null ? [] : [{ name, value: value.seal(placeOf(name)), ...holesIn(value.text) }],
    ),
  ]
}

/** With what a call has: a secret is that of every request. */
const fillsHoles = (urls: readonly EndpointSettings[]): boolean =>
  urls.some(({ url, headers }) =>
    [...(hasHoles(url) ? templateHoles(url) : []), ...headers.flatMap(({ holes = [] }) => holes)].some(
      (hole) => secretIn(hole) === null,
    ),
  )

function holesIn(text: string): { holes?: string[] } {
  const holes = hasHoles(text) ? templateHoles(text) : []
  return holes.length > 0 ? { holes } : {}
}

/** AES-GCM keeps the length; unpadded base64url has 4 characters for 3 bytes. */
function sealedByteLength(sealed: SealedSecret): number {
  return Math.floor((sealed.ciphertext.length * 3) / 4)
}

function repeated(values: readonly string[]): string[] {
  return [...new Set(values.filter((value, index) => values.indexOf(value) < index))]
}

/**
 * Why no request can be made of a destination as the settings have it, in one line without any value; null when it
 * can. Commands write nothing of the kind, but a client that may write to the settings' topic can.
 */
export function destinationFault({ urls, options }: Pick<Destination, 'urls' | 'options'>): string | null {
  if (urls.length === 0) return 'it has no URL'
  const ids = new Set<string>()
  for (const { id, url, headers } of urls) {
    if (ids.has(id)) return `it has two URLs with the id ${JSON.stringify(id)}`
    ids.add(id)
    if (!parseRequestUrl(url)?.url) return `what stands as its URL ${JSON.stringify(id)} is none`
    for (const { name } of headers)
      if (headerNameFaults(name).length > 0)
        return `the name of a header of its URL ${JSON.stringify(id)} is none, or reserved`
  }
  if (options.proxy !== null && ownProxyFaults(options.proxy).length > 0)
    return 'what stands as its proxy is none'
  if (options.oauthTokenUrl !== null && urlFaults(options.oauthTokenUrl).length > 0)
    return 'what stands as its token URL is none'
  return null
}

/** The same of a header's value, which is known only once it was decrypted. */
export const headerFault = (name: string, value: string): string | null =>
  isHeaderValue(value) ? null : `header ${JSON.stringify(name)} has a value that no header can have`
