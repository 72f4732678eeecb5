import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { CallFilter } from '../../core/call/filter.ts'
import { destinationFault, headerFault } from '../../core/settings/destination-rules.ts'
import { createHash, createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto'
import { batchBody, batchedBytes, type BatchTerms } from '../../core/shape/batch.ts'
import {
  bodyWithSecrets,
  missingSecret,
  secretHole,
  secretsOf,
  withSecretsIn,
} from '../../core/shape/secret-holes.ts'
import { documentsShape, shapeOf, type Shape, type Shaped } from '../../core/shape/shape.ts'
import { parseRequestUrl } from '../../core/shape/request-url.ts'
import { hasHoles, parseTemplate, Unrenderable, type Fillable } from '../../core/shape/text-template.ts'
import type { RetryPolicy } from '../../core/delivery/disposition.ts'
import { strictTermsOf, type StrictTerms } from '../../core/ordering/strict-terms.ts'
import { defaultOptions } from '../../core/settings/destination-options.ts'
import { deliveryIdSuffix, type Delivery } from '../../core/delivery/delivery.ts'
import { activeSecrets } from '../../core/settings/secrets.ts'
import { isForOrigins, templateSecretFaults } from '../../core/settings/template-secrets.ts'
import {
  headerPlace,
  loginPlace,
  noLogin,
  sharedSecretPlace,
  templateSecretPlace,
  type SecretPlace,
  type Destination,
  type Endpoint,
  type LoginName,
  type SealedSecret,
} from '../../core/settings/settings.ts'
import { sha256 } from '../../sha256.ts'
import type { DestinationMetrics } from '../metrics.ts'
import type { ActiveDelivery } from '../send/active-delivery.ts'
import type { EndpointQueue } from '../send/endpoint-queue.ts'
import type { StrictOrder } from '../send/strict-order.ts'
import { Lanes } from '../send/lanes.ts'
import { type SignedRequest, StandardSigner } from '../send/signed-request.ts'
import type { FilledHeader, OAuthLogin, TlsLogin, WebhookTarget } from '../send/webhook-transport.ts'

export const defaultStrictTerms = strictTermsOf(defaultOptions)

/**
 * A destination as the forwarder works with it: its endpoints and secret of the moment, and its lanes.
 *
 * A destination that delivers to every URL has one of these for each URL beside that of the whole: its deliveries
 * are planned for these, so each URL has its own order and its own fate.
 */
export class DestinationRuntime {
  readonly id: string
  readonly metrics: DestinationMetrics
  readonly lanes = new Lanes<ActiveDelivery>()
  enabled = true
  /** Set while it is paused: what would be sent is held. */
  pauseId: string | null = null
  /** Set where it stands for one URL of the destination. */
  readonly urlId: string | null
  /** Null: every call is sent. */
  filter: CallFilter | null = null
  passesTraceContext = false
  /** Null: each call has a request of its own. */
  batch: BatchTerms | null = null
  /** When its retries are made: the deployment's where it has none of its own. */
  policy: RetryPolicy
  /** Set where the order of a user's calls is kept through failures. */
  order: StrictOrder | null = null
  /** How long a call is waited for then. */
  strictTerms: StrictTerms = defaultStrictTerms
  /** As the settings have them, whether or not they could be opened. */
  secretNames: ReadonlySet<string> = noNames
  /** Grows with each change of what requests are signed and filled with. */
  secretsState = 0
  readonly #idSuffix: string
  /** Null without a shared secret. */
  #bodySigner: BodySigner | null = null
  /** Null unless the headers of Standard Webhooks are sent. */
  #signer: StandardSigner | null = null
  /** Null where it has none: its bodies are sent as they are. */
  #templateSecrets: TemplateSecrets | null = null
  /** What its requests are made of. */
  #shape: Shape = documentsShape
  /** Null before its settings are known. */
  #shaped: Shaped | null = null
  /** By URL, what the requests of single URLs are made of: each once for each state of the settings, when it is needed. */
  #urlShapes = new Map<string, Shape>()
  #endpoints: readonly EndpointQueue[] = []
  #endpointIds: readonly string[] = []

  constructor(id: string, metrics: DestinationMetrics, policy: RetryPolicy, urlId: string | null = null) {
    this.id = id
    this.metrics = metrics
    this.policy = policy
    this.urlId = urlId
    this.#idSuffix = deliveryIdSuffix(id, urlId)
  }

  get endpoints(): readonly EndpointQueue[] {
    return this.#endpoints
  }

  set endpoints(endpoints: readonly EndpointQueue[]) {
    this.#endpoints = endpoints
    this.#endpointIds = endpoints.map(({ id }) => id)
  }

  get endpointIds(): readonly string[] {
    return this.#endpointIds
  }

  get shape(): Shape {
    return this.#shape
  }

  /** From now on. Throws as `shapeOf`, and stays what it was then. */
  shapeBy(destination: Shaped): void {
    this.#shape = shapeOf(destination, sha256, this.urlId)
    this.#shaped = destination
    this.#urlShapes = new Map()
  }

  /**
   * What a request of the call is made of, or why none can be.
   *
   * @param urlId set where the delivery is for that URL alone, also if deliveries of the destination are for any by now
   */
  render(
    call: AnalyticsCall,
    deliveryId: string,
    urlId = this.urlId,
  ): Pick<Delivery, 'body' | 'filled'> | Unrenderable {
    try {
      const { body, filled } = this.#shapeFor(urlId).render(call, deliveryId)
      return { body: Buffer.from(body), filled }
    } catch (error) {
      if (error instanceof Unrenderable) return error
      throw error
    }
  }

  #shapeFor(urlId: string | null): Shape {
    if (urlId === null || urlId === this.urlId || this.#shaped === null) return this.#shape
    let shape = this.#urlShapes.get(urlId)
    if (!shape) this.#urlShapes.set(urlId, (shape = shapeOf(this.#shaped, sha256, urlId)))
    return shape
  }

  deliveryId(messageId: string): string {
    return messageId + this.#idSuffix
  }

  /** @param secrets the active ones, the newest first: that one signs X-Signature */
  setSecrets(
    secrets: readonly string[],
    standardWebhooks: boolean,
    templateSecrets: TemplateSecrets = noSecrets,
  ): void {
    this.secretsState++
    this.#templateSecrets = templateSecrets.size === 0 ? null : templateSecrets
    const [newest] = secrets
    this.#bodySigner = newest === undefined ? null : new BodySigner(newest)
    this.#signer = standardWebhooks && newest !== undefined ? new StandardSigner(secrets) : null
  }

  /**
   * The signature is the lowercase hex HMAC-SHA1 of the body's bytes; null without a shared secret. The secrets of the
   * moment are filled in before: what a retry waits with has none.
   *
   * @param attempt of the delivery, from 1
   */
  sign(delivery: Delivery, traceparent: string | null, attempt: number): SignedRequest {
    const { id, filled = null } = delivery
    const body = this.#bodyOf(delivery)
    return {
      body,
      filled,
      attempt,
      signature: this.#signatureOf(body),
      idempotencyKey: id,
      signer: this.#signer,
      traceparent: this.passesTraceContext ? traceparent : null,
    }
  }

  #bodyOf(delivery: Pick<Delivery, 'body' | 'filled'>): Uint8Array {
    return this.#templateSecrets === null ? delivery.body : bodyToSend(delivery, this.#templateSecrets)
  }

  /** What it takes of a batch. */
  batchedBytes(delivery: Delivery): number {
    return batchedBytes(this.#bodyOf(delivery))
  }

  /** Why what was rendered before can be sent no more: the secret that its body names was taken away. */
  lacking({ filled }: Pick<Delivery, 'filled'>): Unrenderable | null {
    const name = filled === null ? null : missingSecret(filled, this.secretNames)
    return name === null ? null : new Unrenderable(`${secretHole(name)}: there is no such secret any more`)
  }

  #signatureOf(body: Uint8Array): string | null {
    return this.#bodySigner === null ? null : this.#bodySigner.sign(body)
  }

  /** One request for all of them, signed as a whole. */
  signBatch(deliveries: readonly Delivery[], format: BatchTerms['format']): SignedRequest {
    const body = batchBody(
      deliveries.map((delivery) => this.#bodyOf(delivery)),
      format,
    )
    return {
      body,
      signature: this.#signatureOf(body),
      idempotencyKey: batchKey(deliveries.map(({ id }) => id)),
      signer: this.#signer,
    }
  }
}

/** The `Idempotency-Key` of a batch: the same for the same deliveries in the same order. */
export const batchKey = (ids: readonly string[]): string =>
  hash('sha256', JSON.stringify(ids), 'hex').slice(0, 32)

/** What `${secret.NAME}` stands for, by the name. */
export type TemplateSecrets = ReadonlyMap<string, string>
const noSecrets: TemplateSecrets = new Map()
const noNames: ReadonlySet<string> = new Set()

/**
 * The body with the secrets that it names. One that was taken away a moment ago leaves its name, as it lies in the topics: what
 * waits in a tier is looked at before (`lacking`).
 */
export function bodyToSend(
  { body, filled }: Pick<Delivery, 'body' | 'filled'>,
  secrets: TemplateSecrets,
): Uint8Array {
  const names = secretsOf(filled)
  if (names.length === 0) return body
  const named = new Map([...secrets].filter(([name]) => names.includes(name)))
  return Buffer.from(bodyWithSecrets(Buffer.from(body).toString(), named))
}

export type OpenSecret = (sealed: SealedSecret, place: SecretPlace) => string

/**
 * What a destination needs of its settings before anything can be sent to it: its active shared secrets, the newest
 * first, and its targets by URL id. Throws when a secret cannot be opened, or an event holds what no command would have
 * written.
 */
export function setUp(
  destination: Destination,
  open: OpenSecret,
): {
  secrets: readonly string[]
  templateSecrets: TemplateSecrets
  targets: ReadonlyMap<string, WebhookTarget>
} {
  const fault = destinationFault(destination)
  if (fault !== null) throw new Error(fault)
  const { id, urls } = destination
  const secrets = activeSecrets(destination).map((sealed) => open(sealed, sharedSecretPlace(id)))
  const templateSecrets = openedTemplateSecrets(destination, open)
  const targets = new Map(
    urls.map((endpoint) => [
      endpoint.id,
      targetOf(destination, endpoint, { secrets, templateSecrets }, open),
    ]),
  )
  return { secrets, templateSecrets, targets }
}

/** Throws as `setUp`. */
export function openedTemplateSecrets(
  { id, urls, templateSecrets }: Pick<Destination, 'id' | 'urls' | 'templateSecrets'>,
  open: OpenSecret,
): TemplateSecrets {
  if (templateSecrets.length === 0) return noSecrets
  return new Map(
    templateSecrets.map((secret) => {
      const { name } = secret
      if (!isForOrigins(secret, urls)) throw new Error(`its secret "${name}" was set for another host`)
      const text = open(secret.value, templateSecretPlace(id, secret))
      const [fault] = templateSecretFaults(text)
      if (fault !== undefined) throw new Error(`its secret "${name}" ${fault}`)
      return [name, text]
    }),
  )
}

function secretFor(hole: string, secrets: TemplateSecrets): string {
  const text = secrets.get(hole)
  if (text === undefined) throw new Error(`it names ${secretHole(hole)}, and has no such secret`)
  return text
}

/** Throws as `setUp`. */
export function targetOf(
  { id, options, login }: Pick<Destination, 'id' | 'options' | 'login'>,
  { url, headers }: Endpoint,
  { secrets, templateSecrets }: { secrets: readonly string[]; templateSecrets: TemplateSecrets },
  open: OpenSecret,
): WebhookTarget {
  // Without a prototype: a header may have any name, `__proto__` too.
  const opened = Object.create(null) as Record<string, string>
  const withHoles: FilledHeader[] = []
  for (const { name, value: sealed, holes = [] } of headers) {
    const text = open(sealed, headerPlace(id, url, name))
    const template = holes.length === 0 ? null : (parseTemplate(text).template ?? { parts: [] })
    const value = template && withSecretsIn(template, (hole) => secretFor(hole, templateSecrets))
    const fixed = value === null ? text : value.parts.every(isText) ? value.parts.join('') : null
    const fault = headerFault(name, fixed ?? text)
    if (fault !== null) throw new Error(fault)
    if (fixed !== null) opened[name] = fixed
    else withHoles.push({ name, value: fillable(value!) })
  }
  const parsed = hasHoles(url) ? parseRequestUrl(url)!.url! : null
  // It stays beside the URL also where nothing of it is of the call: the URL is shown.
  const path =
    parsed?.path && withSecretsIn(parsed.path, (hole) => encodeURIComponent(secretFor(hole, templateSecrets)))
  const { method, proxy, batch, batchFormat } = options
  const contentType = batch !== null && batchFormat === 'lines' ? 'lines' : options.contentType
  return {
    url: parsed?.base.href ?? url,
    headers: opened,
    secrets: [...secrets, ...templateSecrets.values()],
    method,
    contentType,
    proxy,
    tls: tlsOf(id, login, open),
    oauth: oauthOf(id, options, login, open),
    path: path ? fillable(path) : null,
    withHoles,
  }
}

function tlsOf(id: string, login: Destination['login'], open: OpenSecret): TlsLogin | null {
  if (login === noLogin) return null
  const owner = { id, tokenUrl: null }
  const opened = (name: LoginName) => login[name] && open(login[name], loginPlace(owner, name))
  const [cert, key, ca] = [opened('clientCert'), opened('clientKey'), opened('ca')]
  return cert === null && ca === null ? null : { cert, key, ca }
}

/** Throws where a part of it is missing. */
function oauthOf(
  owner: string,
  options: Destination['options'],
  { oauthClientSecret }: Destination['login'],
  open: OpenSecret,
): OAuthLogin | null {
  const { oauthTokenUrl: tokenUrl, oauthClientId: clientId, oauthClientAuth: clientAuth } = options
  const { oauthScope: scope, oauthAudience: audience } = options
  if (tokenUrl === null) return null
  if (clientId === null || oauthClientSecret === null)
    throw new Error('it has a token URL, and no client id or no client secret')
  const clientSecret = open(oauthClientSecret, loginPlace({ id: owner, tokenUrl }, 'oauthClientSecret'))
  return { owner, tokenUrl, clientId, clientSecret, clientAuth, scope, audience }
}

const isText = (part: Fillable['parts'][number]): part is string => typeof part === 'string'

/** Without what evaluates it, so that two of them can be compared. */
const fillable = ({ parts }: Fillable): Fillable => ({
  parts: parts.map((part) => (typeof part === 'string' ? part : { text: part.text })),
})

/** Of SHA-1, in bytes: RFC 3174. */
const [blockBytes, digestBytes] = [64, 20]
/** Longer bodies are not copied. */
const maxCopiedBytes = 16 * 1_024

/** One for all: a body is copied behind the key's block and hashed before anything else happens. */
const inner = Buffer.alloc(blockBytes + maxCopiedBytes)
const outer = Buffer.alloc(blockBytes + digestBytes)

/**
 * The HMAC-SHA1 of bodies with one secret. HMAC is a hash of a hash (RFC 2104), and Node's one-shot hash takes half as
 * long as its Hmac, which makes an object outside of the heap for every body.
 */
export class BodySigner {
  readonly #secret: string
  /** Made for the first long body: most secrets never sign one, and it takes as long as all else here. */
  #key: KeyObject | null = null
  /** Made for the first body: most destinations get none for long. */
  #blocks: Blocks | null = null

  constructor(secret: string) {
    this.#secret = secret
  }

  /** In lowercase hex. */
  sign(body: Uint8Array): string {
    if (body.length > maxCopiedBytes) {
      this.#key ??= createSecretKey(this.#secret, 'utf8')
      return createHmac('sha1', this.#key).update(body).digest('hex')
    }
    const blocks = (this.#blocks ??= blocksOf(this.#secret))
    inner.set(blocks.inner)
    inner.set(body, blockBytes)
    // As text, for a digest in a Buffer takes as long as the hash.
    const digest = hash('sha1', inner.subarray(0, blockBytes + body.length), 'binary')
    outer.set(blocks.outer)
    outer.write(digest, blockBytes, 'latin1')
    return hash('sha1', outer, 'hex')
  }
}

/** The key's block as RFC 2104 pads it, for the hash of the body and for the hash of that. */
interface Blocks {
  inner: Uint8Array
  outer: Uint8Array
}

function blocksOf(secret: string): Blocks {
  const bytes = Buffer.from(secret, 'utf8')
  const block = new Uint8Array(blockBytes)
  block.set(bytes.length > blockBytes ? createHash('sha1').update(bytes).digest() : bytes)
  return { inner: block.map((byte) => byte ^ 0x36), outer: block.map((byte) => byte ^ 0x5c) }
}
