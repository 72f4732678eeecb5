import { randomUUID } from 'node:crypto'
import { CallWriter } from '../../adapters/kafka/write/call-writer.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { readTrackingCall } from '../../core/call/tracking-call.ts'
import type { Context } from '../context.ts'
import type { Arrivals } from './demo-parts.ts'
import { demoId } from './demo.ts'
import type { Screen } from './dev.ts'

/** One of each type that applications send, as `produce` takes them. */
const lines = [
  { type: 'identify', userId: 'ada', traits: { name: 'Ada Lovelace', plan: 'pro' } },
  { type: 'track', userId: 'ada', event: 'Order Completed', properties: { total: 24.5, currency: 'EUR' } },
  { type: 'page', anonymousId: 'visitor-7', name: 'Pricing', properties: { path: '/pricing' } },
  { type: 'screen', userId: 'grace', name: 'Inbox', context: { os: { name: 'Android', version: '16' } } },
  { type: 'group', userId: 'grace', groupId: 'navy', traits: { 'number of ships': 12 } },
  { type: 'alias', previousId: 'visitor-7', userId: 'lin' },
]

/** The calls of a first run, new ones each time. `now` in epoch milliseconds. */
export function sampleCalls(now: number): AnalyticsCall[] {
  return lines.map((line) => {
    const { call, fault } = readTrackingCall(JSON.stringify(line), {
      sourceId: demoId,
      receivedAt: now,
      newMessageId: randomUUID,
    })
    if (fault) throw new Error(`the sample ${line.type}: ${fault.message}`)
    return call
  })
}

/** Generous: a first run on a slow machine compiles as it goes. */
const arrivalMs = 30_000

/** Sends the samples through Kafka and shows them arriving. Rejects when Kafka or the registry do not take them. */
export async function sendSamples(
  context: Context,
  arrivals: Arrivals,
  screen: Screen,
  signal: AbortSignal,
): Promise<void> {
  const { kafka, log, topics, codecs } = context
  await codecs.calls.ready()
  const writer = new CallWriter(kafka, topics.calls, codecs.calls, log)
  const calls = sampleCalls(Date.now())
  screen.say(`\n${calls.length} sample calls go into Kafka and arrive at the demo’s receiver:\n`)
  try {
    await writer.connect()
    const waiting = new AbortController()
    const missing = arrivals.missing(
      calls.map(({ messageId }) => messageId),
      AbortSignal.any([signal, waiting.signal, AbortSignal.timeout(arrivalMs)]),
    )
    try {
      for (const call of calls) await writer.add(call)
      await writer.flush()
    } catch (error) {
      waiting.abort()
      throw error
    }
    const late = (await missing).length
    signal.throwIfAborted()
    screen.say(
      late === 0
        ? `\nAll ${calls.length} arrived, each with its signature verified.`
        : `\n${late} of ${calls.length} have not arrived after ${arrivalMs / 1_000} s. \`npx postrider dead-letters list\` shows what finally failed; the rest is tried again.`,
    )
  } finally {
    writer.close()
  }
}
