import { openMailer } from '../../adapters/mailer.ts'
import { CallWriter } from '../../adapters/kafka/write/call-writer.ts'
import { type Context, withOpen } from '../../cli/context.ts'
import { openSettings } from '../../cli/deployment.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { hasSubscribers } from '../../core/call/built-in-source.ts'
import { isSettled } from '../../core/erasure/deletion-progress.ts'
import type { OperationalEvent } from '../../core/operational/operational-event.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { PostriderError } from '../../errors.ts'
import { mailedAlerts, mailOf, wantsMail } from '../alerts/mail.ts'
import type { Deletions } from '../deletions/deletions.ts'
import {
  defaultOperationalTimes,
  emitOperationalEvents,
  type OperationalTimes,
  type OperationalPorts,
  callOf,
  type Mails,
} from './events.ts'
import { EventsReader, openEventsLease, readCheckpoint, type EventsGroup } from './kafka.ts'

/** A console that was killed holds the lease for so long, in ms. */
const leaseMs = 10_000

export interface OpenEventsOptions extends Context {
  deletions: Pick<Deletions, 'show'>
  mails: Mails | null
  times?: Partial<OperationalTimes> | undefined
}

/** Sends operational events until the signal aborts, while this console is the one to do so. Never rejects. */
export async function runOperationalEvents(options: OpenEventsOptions, signal: AbortSignal): Promise<void> {
  const { config, kafka, log, topics, codecs, deletions, mails, times } = options
  const group: EventsGroup = {
    kafka,
    groupId: `${config.groupId}.events`,
    topics: [topics.deliveries, topics.deadLetters, topics.settings],
    sessionTimeoutMs: leaseMs,
    log,
  }
  const ports: OperationalPorts = {
    acquire: () => openEventsLease(group, signal),
    checkpoint: () => readCheckpoint(group),
    read: (from, fold, flow) => EventsReader.open({ kafka, log, topics, codecs }, from, fold, flow),
    send: (calls) => sendCalls(options, calls),
    async finishedDeletion(requestId) {
      try {
        const { users, sources, state, progress } = await deletions.show(requestId, signal)
        if (state !== 'finished' || !isSettled(progress)) return null
        const sum = (pick: (each: (typeof progress)[number]) => number) =>
          progress.reduce((total, each) => total + pick(each), 0)
        const counts = {
          delivered: sum(({ delivered }) => delivered),
          failed: sum(({ failed }) => failed),
          skipped: sum(({ skipped }) => skipped),
        }
        return { users, sources, ...counts }
      } catch (error) {
        if (error instanceof PostriderError && error.code === 'not_found') return null
        throw error
      }
    },
    now: Date.now,
  }
  await emitOperationalEvents({
    ports,
    mails,
    times: { ...defaultOperationalTimes, ...times },
    consoleUrl: config.consoleUrl,
    log,
    signal,
  })
}

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

/** The same event again is the same call. Resolves to false where nobody gets such: nothing was sent then. */
export async function sendEvent(
  deployment: Context,
  settings: Pick<SettingsState, 'sources' | 'destinations'>,
  mails: Pick<Mails, 'add'> | null,
  event: OperationalEvent,
): Promise<boolean> {
  const call = callOf(event, deployment.config.consoleUrl)
  const isMailed = mails?.add([call]) ?? false
  if (!hasSubscribers(settings)) return isMailed
  await sendCalls(deployment, [call])
  return true
}

/** For a command that has not read the settings, and mails at once. */
export async function sendFound(deployment: Context, event: OperationalEvent): Promise<boolean> {
  return withOpen(openSettings(deployment), async (settings) => {
    await settings.start(AbortSignal.timeout(settingsMs), 'look')
    const { config, log } = deployment
    if (config.mail) {
      const mailer = openMailer(config.mail)
      const call = callOf(event, config.consoleUrl)
      for (const alert of mailedAlerts(mailer, settings.state)) {
        if (!wantsMail(alert, call)) continue
        const { outcome, detail } = await mailer.send(mailOf(call), alert.to)
        if (outcome !== 'taken') log.warn(`a mail was not sent: ${detail}`)
      }
    }
    return sendEvent(deployment, settings.state, null, event)
  })
}
