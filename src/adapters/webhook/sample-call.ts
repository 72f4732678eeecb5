import { createHmac, randomUUID } from 'node:crypto'
import { absentFields, type AnalyticsCall } from '../../core/call/analytics-call.ts'
import { deliveryIdSuffix } from '../../core/delivery/delivery.ts'
import type { Outcome } from '../../core/delivery/outcome.ts'
import { activeSecrets } from '../../core/settings/secrets.ts'
import { sharedSecretPlace, type Destination } from '../../core/settings/settings.ts'
import { Shape } from '../../core/shape/shape.ts'
import { targetOf, type OpenSecret } from '../../forwarder/plan/destination-runtime.ts'
import { type SignedRequest, StandardSigner } from '../../forwarder/send/signed-request.ts'
import type { WebhookTransport } from '../../forwarder/send/webhook-transport.ts'
import type { SampleResult } from '../../operators/destinations/destinations.ts'
import { sha256 } from '../../sha256.ts'
import type { Secrets } from '../secrets.ts'

/**
 * Sends one sample call to each URL of a destination at once, as the forwarder would: signed, with the static
 * headers, the same bytes to all. Once only, and nothing of it reaches Kafka. Throws `secrets_key` when a secret
 * cannot be opened.
 */
export async function sendSample(
  destination: Destination,
  parts: { transport: WebhookTransport; secrets: Secrets; now: number },
): Promise<SampleResult[]> {
  const { transport, secrets, now } = parts
  const shared = activeSecrets(destination).map((sealed) =>
    secrets.open(sealed, sharedSecretPlace(destination.id)),
  )
  const requestTo = sampleRequests(destination, shared, now)
  const open: OpenSecret = (sealed, place) => secrets.open(sealed, place)
  return Promise.all(
    destination.urls.map(async (endpoint, index) => {
      const request = requestTo(endpoint.id)
      const client = transport.open(targetOf(destination, endpoint, shared, open))
      const outcome = await new Promise<Outcome>((resolve) => client.send(request, { onOutcome: resolve }))
      client.close()
      return { number: index + 1, url: endpoint.url, outcome }
    }),
  )
}

/** The request of each URL, by the URL's id. */
function sampleRequests(
  destination: Destination,
  secrets: readonly string[],
  now: number,
): (urlId: string) => SignedRequest {
  const messageId = `test-${randomUUID()}`
  const call: AnalyticsCall = {
    ...absentFields,
    messageId,
    sourceId: destination.sourceIds[0] ?? '',
    type: 'track',
    userId: 'postrider-test',
    event: 'Postrider Test',
    timestamp: now,
    receivedAt: now,
    properties: '{"test":true}',
  }
  const { standardWebhooks, deliverTo } = destination.options
  const [newest] = secrets
  const shape = new Shape(destination, sha256)
  return (urlId) => {
    const idempotencyKey = messageId + deliveryIdSuffix(destination.id, deliverTo === 'every' ? urlId : null)
    const { body: text, filled } = shape.render(call, idempotencyKey)
    const body = Buffer.from(text)
    const signature = newest === undefined ? null : createHmac('sha1', newest).update(body).digest('hex')
    const signer = standardWebhooks && signature !== null ? new StandardSigner(secrets) : null
    return { body, filled, signature, idempotencyKey, signer }
  }
}
