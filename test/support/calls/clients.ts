import type { TestContext } from 'node:test'
import { Analytics, type AnalyticsOptions, type DeliveryError } from '../../../src/client/index.ts'
import { writeKey, type CollectorDouble } from './collector-double.ts'

export interface TestClient extends Analytics {
  failures: DeliveryError[]
  /** Of all failures. */
  named(): string[]
}

/** A client on the double, with retries that do not make a test wait; closed after the test. */
export function clientOf(
  t: TestContext,
  collector: Pick<CollectorDouble, 'url'>,
  options: AnalyticsOptions = {},
): TestClient {
  const failures: DeliveryError[] = []
  const client = new Analytics(writeKey, {
    endpoint: collector.url,
    initialBackoff: 1,
    maxBackoff: 5,
    onError: (error) => failures.push(error),
    ...options,
  })
  t.after(() => client.close({ timeout: 0 }))
  return Object.assign(client, {
    failures,
    named: () => failures.flatMap(({ calls }) => calls.map(({ messageId }) => messageId)),
  })
}

/** Makes `count` track calls and gives their messageIds. */
export function trackSome(client: Analytics, count: number, first = 0): string[] {
  const ids = Array.from({ length: count }, (_, index) => `m-${first + index}`)
  for (const messageId of ids) client.track({ userId: 'u-1', event: 'Order Completed', messageId })
  return ids
}
