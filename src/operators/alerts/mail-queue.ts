import type { WaitingMail } from '../../core/operational/operational-fold.ts'
import { backOff, pause } from '../../retry-forever.ts'
import { mailOf, wantsMail, type MailedAlert, type Mailer } from './mail.ts'

/** What became of mails. `refused`: by the server. `expired`: it was away for too long. `omitted`: too many waited. */
export const mailOutcomes = ['taken', 'refused', 'expired', 'omitted'] as const
export type MailOutcome = (typeof mailOutcomes)[number]

export interface MailTimes {
  /** The first wait after an attempt that failed, in ms; it doubles each time. */
  initialMs: number
  maxMs: number
  /** For how long a mail is tried. */
  giveUpMs: number
}

export const defaultMailTimes: MailTimes = { initialMs: 2_000, maxMs: 300_000, giveUpMs: 4 * 3_600_000 }

export interface MailQueueOptions {
  mailer: Mailer
  /** Who is mailed now. */
  alerts(): readonly MailedAlert[]
  log: { info(message: string): void; warn(message: string): void; error(message: string): void }
  count(outcome: MailOutcome): void
  times?: MailTimes
  /** Epoch ms. */
  now(): number
}

/** What waits is kept with the commits of operational events, which have room for no more. */
export const maxMailsWaiting = 20

type AlertId = MailedAlert['id']

interface Waiting {
  call: WaitingMail
  since: number
  /** Who still gets it. */
  to: Set<AlertId>
}

/**
 * Sends mails, those of an alert one after another and in order, for as long as it takes: whoever adds one waits for
 * nothing, and no alert for another. Beyond `maxMailsWaiting` the oldest is given up. What nobody gets is counted and
 * logged, and the next mail of that alert says how many.
 */
export class MailQueue {
  readonly #options: MailQueueOptions
  readonly #times: MailTimes
  #waiting: Waiting[] = []
  /** Mails by alert that were not sent since the last that was. */
  readonly #lost = new Map<AlertId, number>()
  /** Alerts of which the last attempt failed, and how many did in a row. */
  readonly #failures = new Map<AlertId, number>()
  #wake: (() => void) | null = null

  constructor(options: MailQueueOptions) {
    this.#options = options
    this.#times = options.times ?? defaultMailTimes
  }

  /** The oldest first. */
  get waiting(): WaitingMail[] {
    return this.#waiting.map(({ call, to }) => ({ ...call, mailTo: [...to] }))
  }

  /** One that waits already is not added again. Returns whether anybody gets any of them. */
  add(calls: readonly WaitingMail[]): boolean {
    const { alerts, log, now } = this.#options
    let isWanted = false
    for (const call of calls) {
      if (this.#waiting.some((each) => each.call.messageId === call.messageId)) {
        isWanted = true
        continue
      }
      const to = new Set(
        call.mailTo ??
          alerts()
            .filter((alert) => wantsMail(alert, call))
            .map(({ id }) => id),
      )
      if (to.size === 0) continue
      isWanted = true
      this.#waiting.push({ call, since: now(), to })
      const oldest = this.#waiting.length > maxMailsWaiting ? this.#waiting.shift() : null
      if (oldest) {
        for (const id of oldest.to) this.#lose(id, 'omitted')
        log.error(`a mail is not sent, for ${maxMailsWaiting} later ones wait: ${subjectOf(oldest.call)}`)
      }
    }
    this.#wake?.()
    return isWanted
  }

  /** Until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const lines = new Map<AlertId, Promise<void>>()
    while (!signal.aborted) {
      for (const id of new Set(this.#waiting.flatMap(({ to }) => [...to])))
        if (!lines.has(id))
          lines.set(
            id,
            this.#sendAll(id, signal, () => lines.delete(id)),
          )
      await this.#added(signal)
    }
    await Promise.all(lines.values())
    if (this.#waiting.length > 0)
      this.#options.log.warn(`${this.#waiting.length} mails were not sent before the end`)
  }

  /** What waits for one alert. @param ended called before anything more can be added */
  async #sendAll(id: AlertId, signal: AbortSignal, ended: () => void): Promise<void> {
    const { log } = this.#options
    while (!signal.aborted) {
      const next = this.#waiting.find(({ to }) => to.has(id))
      if (!next) return ended()
      const alert = this.#options.alerts().find((each) => each.id === id)
      if (!alert) {
        // It was removed or disabled meanwhile, or MAIL_TO is not set any more.
        log.info(`a mail that waited is not sent, for nobody is to get it now: ${subjectOf(next.call)}`)
        this.#done(next, id)
        continue
      }
      const trouble = await this.#attempt(next, alert, signal)
      const failures = this.#failures.get(id) ?? 0
      if (trouble === null) {
        if (failures > 0) log.info(`${mailsTo(id)} are sent again`)
        this.#failures.delete(id)
        continue
      }
      if (signal.aborted) break
      if (failures === 0) log.warn(`${mailsTo(id)} are not sent for now, and tried again: ${trouble}`)
      this.#failures.set(id, failures + 1)
      await pause(backOff(failures, this.#times.initialMs, this.#times.maxMs), signal)
    }
  }

  /** Null where it is done with, else why not. */
  async #attempt(next: Waiting, { id, to }: MailedAlert, signal: AbortSignal): Promise<string | null> {
    const { mailer, log, count, now } = this.#options
    const lost = this.#lost.get(id) ?? 0
    const { outcome, detail, refusedFor = [] } = await mailer.send(mailOf(next.call, lost), to, signal)
    const isExpired = outcome === 'failed' && now() - next.since >= this.#times.giveUpMs
    if (outcome === 'failed' && !isExpired) return detail
    this.#done(next, id)
    if (outcome === 'taken') {
      this.#lost.set(id, (this.#lost.get(id) ?? 0) - lost)
      count('taken')
      if (refusedFor.length > 0) log.error(`the mail server refuses ${refusedFor.join(', ')}: ${detail}`)
      return null
    }
    this.#lose(id, isExpired ? 'expired' : 'refused')
    log.error(`a mail was not sent: ${subjectOf(next.call)}: ${detail}`)
    return isExpired ? detail : null
  }

  #done(mail: Waiting, id: AlertId): void {
    mail.to.delete(id)
    if (mail.to.size === 0) this.#waiting = this.#waiting.filter((each) => each !== mail)
  }

  #lose(id: AlertId, outcome: MailOutcome): void {
    this.#lost.set(id, (this.#lost.get(id) ?? 0) + 1)
    this.#options.count(outcome)
  }

  #added(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        signal.removeEventListener('abort', done)
        this.#wake = null
        resolve()
      }
      this.#wake = done
      signal.addEventListener('abort', done)
    })
  }
}

const mailsTo = (id: AlertId): string => (id === null ? 'mails' : `mails of alert ${JSON.stringify(id)}`)

const subjectOf = (call: WaitingMail): string => mailOf(call).subject
