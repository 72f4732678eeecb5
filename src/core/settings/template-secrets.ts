import { fault, type Fault } from '../decision.ts'
import { compileBody } from '../shape/body-template.ts'
import { parseRequestUrl } from '../shape/request-url.ts'
import { isSecretName, secretIn } from '../shape/secret-holes.ts'
import { hasHoles, templateHoles } from '../shape/text-template.ts'
import type { TemplateSecretEdit } from './commands.ts'
import {
  templateSecretPlace,
  type Destination,
  type EndpointSettings,
  type TemplateSecret,
} from './settings.ts'

export const maxTemplateSecrets = 20
export const maxTemplateSecretLength = 1_024

/** It may come to stand anywhere in a request, so it is one line of what can. */
const oneLine = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

/** What is wrong with the text of a secret, one phrase a fault. */
export function templateSecretFaults(text: string): string[] {
  if (text.length < 1 || text.length > maxTemplateSecretLength)
    return [`is ${text.length} characters long, 1-${maxTemplateSecretLength} are allowed`]
  if (!oneLine.test(text)) return ['is not one line of printable ASCII without a space at its ends']
  return /^\.\.?$/.test(text) ? ['is "." or "..", which would lead out of a path'] : []
}

/** What templates are in, as it would be. */
interface Templates {
  urls: readonly EndpointSettings[]
  body: Destination['options']['body']
}

/** The origins that its requests go to, each once, in one order. */
export const originsOf = (urls: readonly { url: string }[]): string[] =>
  [...new Set(urls.flatMap(({ url }) => parseRequestUrl(url)?.url?.base.origin ?? []))].sort()

/** Whether a secret may go to all of them. */
export const isForOrigins = ({ origins }: TemplateSecret, urls: readonly { url: string }[]): boolean =>
  originsOf(urls).every((origin) => origins.includes(origin))

/** Each secret that a template names, and which template does. */
export function namedSecrets({ urls, body }: Templates): { name: string; by: string }[] {
  const named: { name: string; by: string }[] = []
  const add = (by: string, holes: readonly string[]) =>
    named.push(...holes.flatMap((hole) => secretIn(hole) ?? []).map((name) => ({ name, by })))
  urls.forEach(({ url, headers }, index) => {
    if (hasHoles(url)) add(`URL ${index + 1}`, templateHoles(url))
    for (const { name, holes = [] } of headers) add(`header ${name} of URL ${index + 1}`, holes)
  })
  for (const [type, text] of Object.entries(body ?? {}))
    for (const name of compileBody(text).body?.secrets ?? []) named.push({ name, by: `the body for ${type}` })
  return named
}

interface SecretsOfTemplates extends Templates {
  id: string
  edits: readonly TemplateSecretEdit[]
  current: readonly TemplateSecret[]
  /** Of what does not go together. */
  code: Fault['code']
}

/**
 * The secrets after an edit; null where it does not touch them. Each is bound to the origins that the URLs have when it is
 * set, as a header is to its URL: it must not come out at another host.
 */
export function editTemplateSecrets({ id, edits, current, urls, body, code }: SecretsOfTemplates): {
  secrets: TemplateSecret[] | null
  faults: Fault[]
} {
  const faults: Fault[] = []
  const refuse = (message: string, as: Fault['code'] = 'usage') =>
    faults.push(fault(as, 'templateSecrets', message))
  for (const { name, value } of edits) {
    if (!isSecretName(name))
      refuse(`${JSON.stringify(name)} is no name of a secret: 1-64 letters, digits and _, and no digit first`)
    for (const phrase of value === null ? [] : templateSecretFaults(value.text))
      refuse(`the secret ${JSON.stringify(name)} ${phrase}`)
  }
  const edited = new Set(edits.map(({ name }) => name))
  const origins = originsOf(urls)
  const kept = current.filter(({ name }) => !edited.has(name))
  for (const secret of kept)
    if (!isForOrigins(secret, urls))
      refuse(
        `the secret "${secret.name}" was set for ${secret.origins.join(' and ')}: another host needs it again`,
      )
  const set = edits.flatMap(({ name, value }) =>
    value === null ? [] : [{ name, origins, value: value.seal(templateSecretPlace(id, { name, origins })) }],
  )
  const secrets = [...kept, ...set]
  if (secrets.length > maxTemplateSecrets)
    refuse(`${secrets.length} secrets for templates, at most ${maxTemplateSecrets} are allowed`)
  const known = new Set(secrets.map(({ name }) => name))
  for (const { name, by } of namedSecrets({ urls, body }))
    if (!known.has(name)) refuse(`${by} names secret.${name}, and there is no secret of that name`, code)
  return { secrets: edits.length > 0 ? secrets : null, faults }
}
