// Replays on a real Kafka.
import assert from 'node:assert/strict'
import { someCall } from '../calls/calls.ts'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import type { RunningConsole } from '../consoles.ts'
import type { ReceivedRequest, Receiver } from '../receivers.ts'
import { until } from '../until.ts'

/** Calls of several users in turns, numbered from 0 on. */
export const callsOfUsers = (count: number, users: number, prefix = 'm'): AnalyticsCall[] =>
  Array.from({ length: count }, (_, n) =>
    someCall({
      messageId: `${prefix}${n}`,
      userId: `u${n % users}`,
      event: n % 2 === 0 ? 'Even' : 'Odd',
      properties: JSON.stringify({ n }),
    }),
  )

export const idsOf = (requests: readonly ReceivedRequest[]): string[] =>
  requests.map((request) => String(request.json().messageId))

export const keysOf = ({ requests }: Receiver): string[] =>
  requests.map(({ headers }) => String(headers['idempotency-key']))

/** Asserts that what came of each user came in the order of its numbers, each once. */
export function assertInOrder(requests: readonly ReceivedRequest[]): void {
  const last = new Map<unknown, number>()
  for (const request of requests) {
    const { userId, properties } = request.json() as { userId: string; properties: { n: number } }
    assert.ok(properties.n > (last.get(userId) ?? -1), `${userId}: ${properties.n} after ${last.get(userId)}`)
    last.set(userId, properties.n)
  }
}

export interface ShownReplay {
  id: string
  state: string
  sent: number
  rate: number | null
  totals: Record<string, number>
  keptSince: string | null
  waitsFor: string | null
  overlapping: string[]
}

/** Starts a replay by the API. */
export const startReplay = async (console: Pick<RunningConsole, 'ok'>, terms: object): Promise<ShownReplay> =>
  (await console.ok(201, 'POST', '/replays', { since: '1h', ...terms })) as unknown as ShownReplay

/** Resolves to the replay once it is in that state. */
export async function replayIn(
  console: Pick<RunningConsole, 'ok'>,
  id: string,
  state: string,
  withinMs = 60_000,
): Promise<ShownReplay> {
  let shown: ShownReplay | null = null
  await until(
    async () => {
      shown = (await console.ok(200, 'GET', `/replays/${id}`)) as unknown as ShownReplay
      return shown.state === state
    },
    withinMs,
    `replay ${id} ${state}`,
  )
  return shown!
}
