import { createHmac, randomUUID } from 'node:crypto'
import { absentFields, type AnalyticsCall } from '../../core/call/analytics-call.ts'
import { deliveryIdSuffix } from '../../core/delivery/delivery.ts'
import type { Outcome } from '../../core/delivery/outcome.ts'
import { activeSecrets } from '../../core/settings/secrets.ts'
import { sharedSecretPlace, type Destination } from '../../core/settings/settings.ts'
import { batchBody, batchTermsOf } from '../../core/shape/batch.ts'
import { shapeOf } from '../../core/shape/shape.ts'
import { filledPath, parseRequestUrl } from '../../core/shape/request-url.ts'
import { bodyForPeople, secretHole, withSecretsIn } from '../../core/shape/secret-holes.ts'
import { hasHoles, Unrenderable } from '../../core/shape/text-template.ts'
import {
  batchKey,
  bodyToSend,
  openedTemplateSecrets,
  targetOf,
  type OpenSecret,
  type TemplateSecrets,
} from '../../forwarder/plan/destination-runtime.ts'
import { type SignedRequest, StandardSigner } from '../../forwarder/send/signed-request.ts'
import type { WebhookTarget, WebhookTransport } from '../../forwarder/send/webhook-transport.ts'
import type { SampleResult, SampleTerms, ShownRequest } from '../../operators/destinations/destinations.ts'
import { sha256 } from '../../sha256.ts'
import type { Secrets } from '../secrets.ts'
import { headOf, templatesOf } from './endpoint.ts'
import { shownHead } from './shown-request.ts'

/**
 * What one call's request to each URL of a destination looks like, and what comes of it: sent at once, as the forwarder
 * would, and once only; nothing of it reaches Kafka. Throws `secrets_key` when a secret cannot be opened, and Unrenderable
 * when no request can be made of the call.
 */
export async function sendSample(
  destination: Destination,
  parts: { transport: WebhookTransport; secrets: Secrets; now: number },
  { call = sampleCall(destination, parts.now), dryRun = false }: SampleTerms = {},
): Promise<SampleResult[]> {
  const { transport, secrets, now } = parts
  const shared = activeSecrets(destination).map((sealed) =>
    secrets.open(sealed, sharedSecretPlace(destination.id)),
  )
  const open: OpenSecret = (sealed, place) => secrets.open(sealed, place)
  const templateSecrets = openedTemplateSecrets(destination, open)
  const opened = { secrets: shared, templateSecrets }
  const requestTo = sampleRequests(destination, call, opened)
  const all = destination.urls.map((endpoint, index) => {
    const target = targetOf(destination, endpoint, opened, open)
    const { request, body } = requestTo(endpoint.id)
    const { url } = endpoint
    return { number: index + 1, url, target, request, shown: shownOf({ url, body }, target, request, now) }
  })
  return Promise.all(
    all.map(async ({ number, url, target, request, shown }) => {
      if (dryRun) return { number, url, request: shown, outcome: null }
      const client = transport.open(target)
      const outcome = await new Promise<Outcome>((resolve) => client.send(request, { onOutcome: resolve }))
      client.close()
      return { number, url, request: shown, outcome }
    }),
  )
}

/**
 * As it may be shown.
 *
 * @param shown the URL as it is set, and the body with the names of secrets
 */
function shownOf(
  shown: { url: string; body: string },
  target: WebhookTarget,
  request: SignedRequest,
  now: number,
): ShownRequest {
  const head = headOf(target, templatesOf(target), request, now)
  if (head === null) throw new Unrenderable('a header of the request has a character that cannot be sent')
  const hasToken = target.oauth !== null && target.oauth !== undefined
  const { method, url, headers } = shownHead(target, head, hasToken)
  const path = shownPath(shown.url, request)
  return { method, url: path === null ? url : new URL(target.url).origin + path, headers, body: shown.body }
}

/** Null where its URL has no holes. */
function shownPath(url: string, { filled }: SignedRequest): string | null {
  const path = hasHoles(url) ? parseRequestUrl(url)?.url?.path : null
  return path
    ? filledPath(
        withSecretsIn(path, (name) => `\${${secretHole(name)}}`),
        filled ?? [],
        1,
      )
    : null
}

/** One that every destination can get. */
const sampleCall = (destination: Destination, now: number): AnalyticsCall => ({
  ...absentFields,
  messageId: `test-${randomUUID()}`,
  sourceId: destination.sourceIds[0] ?? '',
  type: 'track',
  userId: 'postrider-test',
  event: 'Postrider Test',
  timestamp: now,
  receivedAt: now,
  properties: '{"test":true}',
})

/** The request of each URL, by the URL's id, with its body as it may be shown. */
function sampleRequests(
  destination: Destination,
  call: AnalyticsCall,
  { secrets, templateSecrets }: { secrets: readonly string[]; templateSecrets: TemplateSecrets },
): (urlId: string) => { request: SignedRequest; body: string } {
  const { standardWebhooks, deliverTo } = destination.options
  const batch = batchTermsOf(destination.options)
  const [newest] = secrets
  return (urlId) => {
    const ownUrl = deliverTo === 'every' ? urlId : null
    const deliveryId = call.messageId + deliveryIdSuffix(destination.id, ownUrl)
    const { body: text, filled } = shapeOf(destination, sha256, ownUrl).render(call, deliveryId)
    const idempotencyKey = batch === null ? deliveryId : batchKey([deliveryId])
    const whole = (one: Uint8Array) => (batch === null ? one : batchBody([one], batch.format))
    const body = whole(bodyToSend({ body: Buffer.from(text), filled }, templateSecrets))
    const shown = Buffer.from(whole(Buffer.from(bodyForPeople(text)))).toString()
    const signature = newest === undefined ? null : createHmac('sha1', newest).update(body).digest('hex')
    const signer = standardWebhooks && signature !== null ? new StandardSigner(secrets) : null
    return { request: { body, filled, signature, idempotencyKey, signer }, body: shown }
  }
}
