import type { Redaction } from '../../core/call/redaction.ts'
import type { CallFilter } from '../../core/settings/destination-options.ts'
import { deliveryIdSuffix, type Delivery } from '../../core/delivery/delivery.ts'
import type { ActiveDelivery, DeliveryDestination } from '../send/active-delivery.ts'
import type { EndpointQueue } from '../send/endpoint-queue.ts'
import { Lanes } from '../send/lanes.ts'
import type { DestinationMetrics } from '../metrics.ts'
import type { SignedRequest } from '../send/signed-request.ts'
import { StandardSigner } from '../send/standard-webhooks.ts'
import { BodySigner } from './body-signer.ts'

/**
 * A destination as the forwarder works with it: its endpoints and secret of the moment, and its lanes.
 *
 * A destination that delivers to every URL has one of these for each URL beside that of the whole: its deliveries
 * are planned for these, so each URL has its own order and its own fate.
 */
export class DestinationRuntime implements DeliveryDestination {
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
  /** Null: it gets all of a call. */
  redaction: Redaction | null = null
  passesTraceContext = false
  readonly #idSuffix: string
  /** Null without a shared secret. */
  #bodySigner: BodySigner | null = null
  /** Null unless the headers of Standard Webhooks are sent. */
  #signer: StandardSigner | null = null
  #endpoints: readonly EndpointQueue[] = []
  #endpointIds: readonly string[] = []

  constructor(id: string, metrics: DestinationMetrics, urlId: string | null = null) {
    this.id = id
    this.metrics = metrics
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

  deliveryId(messageId: string): string {
    return messageId + this.#idSuffix
  }

  /** @param secrets the active ones, the newest first: that one signs X-Signature */
  setSecrets(secrets: readonly string[], standardWebhooks: boolean): void {
    const [newest] = secrets
    this.#bodySigner = newest === undefined ? null : new BodySigner(newest)
    this.#signer = standardWebhooks && newest !== undefined ? new StandardSigner(secrets) : null
  }

  /** The signature is the lowercase hex HMAC-SHA1 of the body's bytes; null without a shared secret. */
  sign({ id, body }: Delivery, traceparent: string | null): SignedRequest {
    return {
      body,
      signature: this.#bodySigner === null ? null : this.#bodySigner.sign(body),
      idempotencyKey: id,
      signer: this.#signer,
      traceparent: this.passesTraceContext ? traceparent : null,
    }
  }
}
