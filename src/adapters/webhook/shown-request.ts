// Requests and responses as people may see them: without tokens, signatures and whatever else is secret in them.
import { type Exchange, keptRequestBytes, keptResponseFieldsBytes } from '../../core/delivery/exchange.ts'
import type { HeaderField } from '../../core/delivery/exchange.ts'
import { onlyHoleOf } from '../../core/shape/text-template.ts'
import type { WebhookTarget } from '../../forwarder/send/webhook-transport.ts'
import type { Head } from './endpoint.ts'
import type { OwnSecrets } from './own-secrets.ts'
import type { ResponseFields } from './response.ts'

export const hidden = '[not shown]'

interface ShownHead {
  method: string
  url: string
  headers: HeaderField[]
}

/**
 * Without its token and the values of static headers, which may be secrets. One that is a hole alone is of the call.
 *
 * @param head without the token
 */
export function shownHead(target: WebhookTarget, { template, fields }: Head, hasToken: boolean): ShownHead {
  const secret = (target.withHoles ?? []).filter(({ value }) => onlyHoleOf(value) === null)
  const isHidden = (name: string) => secret.some((header) => header.name === name)
  return {
    method: template.method,
    url: new URL(target.url).origin + template.path,
    headers: [
      ...pairsOf(template.first),
      ...pairsOf(fields).map(({ name, value }) => ({ name, value: isHidden(name) ? hidden : value })),
      ...pairsOf(template.own).map(({ name }) => ({ name, value: hidden })),
      ...(hasToken ? [{ name: 'Authorization', value: `Bearer ${hidden}` }] : []),
    ],
  }
}

const pairsOf = (fields: readonly string[]): HeaderField[] =>
  Array.from({ length: fields.length / 2 }, (_, index) => ({
    name: fields[2 * index]!,
    value: fields[2 * index + 1]!,
  }))

/** Names of query parameters and of response headers whose values are likely secrets, of whoever. */
const secretName = 'key|token|secret|sig|pass|auth|credential|cookie|session'
const secretInQuery = new RegExp(`([?&][^=&#]*(?:${secretName})[^=&#]*=)[^&#]+`, 'gi')
const secretField = new RegExp(`^[^:]*(?:${secretName})[^:]*:`, 'i')

/**
 * What is kept of an attempt that was sent.
 *
 * @param common how many of the headers are the same in all requests of Postrider: what they say is no secret, though it
 *   may be what a static header says too
 * @param secrets of the endpoint, wherever else they stand
 */
export function exchangeOf(
  { method, url, headers }: ShownHead,
  common: number,
  bodyBytes: number,
  answered: ResponseFields | null,
  secrets: OwnSecrets,
): Exchange {
  const lines = (some: readonly HeaderField[]) =>
    some.map(({ name, value }) => `${name}: ${value}\n`).join('')
  // In one go: there may be many secrets to look for.
  const own = `${url.replace(secretInQuery, `$1${hidden}`)}\n${lines(headers.slice(common))}`
  const struck = secrets.strike(Buffer.from(own), keptRequestBytes).toString()
  const urlEnd = struck.indexOf('\n')
  const shownUrl = urlEnd < 0 ? struck : struck.slice(0, urlEnd)
  const requestFields = lines(headers.slice(0, common)) + (urlEnd < 0 ? '' : struck.slice(urlEnd + 1))
  return {
    method,
    url: shownUrl,
    requestFields: requestFields.slice(0, Math.max(0, keptRequestBytes - shownUrl.length)),
    bodyBytes,
    responseFields: answered && responseFieldsOf(answered, secrets),
  }
}

function responseFieldsOf(fields: ResponseFields, secrets: OwnSecrets): string {
  const lines =
    typeof fields === 'string'
      ? fields.split('\r\n').slice(1)
      : Object.entries(fields).flatMap(([name, values = []]) =>
          [values].flat().map((each) => `${name}: ${each}`),
        )
  const text = lines
    .filter((line) => line !== '')
    .map((line) => (secretField.test(line) ? `${line.slice(0, line.indexOf(':'))}: ${hidden}` : line))
    .join('\n')
  return secrets.strike(Buffer.from(text), keptResponseFieldsBytes).toString()
}
