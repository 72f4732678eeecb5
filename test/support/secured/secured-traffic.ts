import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { until } from '../until.ts'
import { startReceiver, type Receiver } from '../receivers.ts'

/** Calls through a collector, requests to a console, and where deliveries arrive. */
export interface Traffic {
  /** Takes every call in the end: `retried` and `parked` the third time, `refused` the second time, which needs a replay. */
  receiver: Receiver
  /** Answers 410. */
  gone: Receiver
  /** A track call by this messageId; resolves to the status. */
  post(messageId: string): Promise<number>
  /** Asserts that the answer is a success. A text is sent as a list of users. */
  api(
    method: string,
    path: string,
    body?: object | string,
    headers?: object,
  ): Promise<Record<string, unknown>>
  arrived(messageId: string, times: number): Promise<void>
  /** Waits until that many dead letters can be seen. */
  deadLetters(query: string, count: number): Promise<void>
}

export async function securedTraffic(
  t: TestContext,
  { collector, console, token }: { collector: () => string; console: () => string; token: string },
): Promise<Traffic> {
  const tries = new Map<string, number>()
  const receiver = await startReceiver(t)
  receiver.answer(({ json }) => {
    const id = String(json().messageId)
    tries.set(id, (tries.get(id) ?? 0) + 1)
    if (['retried', 'parked'].includes(id) && tries.get(id)! <= 2) return { status: 503 }
    return { status: id === 'refused' && tries.get(id) === 1 ? 400 : 200 }
  })
  const gone = await startReceiver(t)
  gone.answer({ status: 410 })
  let writeKey: string | null = null

  const api: Traffic['api'] = async (method, path, body, headers = {}) => {
    const isText = typeof body === 'string'
    const response = await fetch(`${console()}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body && { 'content-type': isText ? 'text/plain' : 'application/json' }),
        ...headers,
      },
      ...(body && { body: isText ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`)
    return JSON.parse(text) as Record<string, unknown>
  }

  return {
    receiver,
    gone,
    api,
    async post(messageId) {
      writeKey ??= String((await api('GET', '/sources/shop')).writeKey)
      const { status } = await fetch(`${collector()}/v1/track`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${writeKey}:`)}` },
        body: JSON.stringify({ userId: 'ada', event: 'Hello', messageId }),
      })
      return status
    },
    arrived: (id, times) => until(() => (tries.get(id) ?? 0) >= times, 60_000, `attempt ${times} of ${id}`),
    deadLetters: (query, count) =>
      until(
        async () => ((await api('GET', `/dead-letters?${query}`)).data as unknown[]).length === count,
        60_000,
        `dead letter ${count} by ${query}`,
      ),
  }
}
