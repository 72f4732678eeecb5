import { CallWriter } from '../../adapters/kafka/write/call-writer.ts'
import { callOf } from '../../console/operational/call-of-event.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { hasSubscribers } from '../../core/operational/built-in-source.ts'
import type { OperationalEvent } from '../../core/operational/operational-event.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import type { Context } from '../context.ts'
import { openSettings } from '../deployment.ts'
import { withOpen } from '../with-open.ts'

/** Joining the settings' group may take 3 s by a broker's own setting. */
const settingsMs = 15_000

/** Resolves once all in-sync replicas have the calls. */
export async function sendCalls(
  { kafka, log, topics, codecs }: Context,
  calls: readonly AnalyticsCall[],
): Promise<void> {
  await codecs.calls.ready()
  const writer = new CallWriter(kafka, topics.calls, codecs.calls, log)
  try {
    for (const call of calls) await writer.add(call)
    await writer.flush()
  } finally {
    writer.close()
  }
}

/** The same event again is the same call. Resolves to false where no destination has subscribed: nothing was sent then. */
export async function sendEvent(
  deployment: Context,
  settings: Pick<SettingsState, 'sources' | 'destinations'>,
  event: OperationalEvent,
): Promise<boolean> {
  if (!hasSubscribers(settings)) return false
  await sendCalls(deployment, [callOf(event, deployment.config.consoleUrl)])
  return true
}

/** For a command that knows no settings. */
export async function sendFound(deployment: Context, event: OperationalEvent): Promise<boolean> {
  return withOpen(openSettings(deployment), async (settings) => {
    await settings.start(AbortSignal.timeout(settingsMs), 'look')
    return sendEvent(deployment, settings.state, event)
  })
}
