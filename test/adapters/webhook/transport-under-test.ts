import { createHmac } from 'node:crypto'
import type { TestContext } from 'node:test'
import {
  createWebhookTransport,
  httpClients,
  type WebhookTransportOptions,
} from '../../../src/adapters/webhook/transport.ts'
import type { Outcome } from '../../../src/core/delivery/outcome.ts'
import type { SignedRequest } from '../../../src/forwarder/send/signed-request.ts'
import type { EndpointClient, WebhookTransport } from '../../../src/forwarder/send/webhook-transport.ts'

/** Who writes requests and reads responses: the tests of one file are run for each (webhook-client-undici.test.ts). */
export const clientName = process.env.TEST_WEBHOOK_CLIENT === 'undici' ? 'undici' : 'direct'
const client = await httpClients[clientName]()

export const loopback = ['127.0.0.0/8', '::1/128']

/** A transport that may reach loopback, closed after the test. */
export function openTransport(
  t: TestContext,
  options: Partial<WebhookTransportOptions> = {},
): WebhookTransport {
  const transport = createWebhookTransport({ client, allowedNetworks: loopback, ca: null, ...options })
  t.after(() => transport.close(0))
  return transport
}

/**
 * A clock that goes only when the test lets it: no request is timed out because the machine is busy, and one is timed out to
 * the millisecond. To be called before the transport is opened.
 */
export function standingClock(t: TestContext): { pass(ms: number): void } {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  // What ends behind the test has time again.
  t.after(() => t.mock.timers.reset())
  // Whole, so that no difference of two times is a fraction off.
  let now = Math.ceil(performance.now())
  t.mock.method(performance, 'now', () => now)
  return {
    pass(ms) {
      now += ms
      t.mock.timers.tick(ms)
    },
  }
}

export function requestOf(text = '{"type":"track"}', secret: string | null = null): SignedRequest {
  const body = Buffer.from(text)
  return {
    body,
    signature: secret === null ? null : createHmac('sha1', secret).update(body).digest('hex'),
    idempotencyKey: 'm1:crm',
  }
}

/** Sends and waits for the outcome; rejects when it comes from within send() or more than once. */
export function send(endpoint: EndpointClient, request = requestOf()): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    let within = true
    let count = 0
    endpoint.send(request, {
      onOutcome(outcome) {
        if (within) reject(new Error('the outcome came from within send()'))
        if (++count > 1) throw new Error('a second outcome for one attempt')
        resolve(outcome)
      },
    })
    within = false
  })
}
