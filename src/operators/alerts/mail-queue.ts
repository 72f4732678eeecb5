import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { backOff, pause } from '../../retry-forever.ts'
import { mailOf, type Mailer } from './mail.ts'

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
  log: { info(message: string): void; warn(message: string): void; error(message: string): void }
  count(outcome: MailOutcome): void
  times?: MailTimes
  /** Epoch ms. */
  now(): number
}

/** What waits is kept with the commits of operational events, which have room for no more. */
export const maxMailsWaiting = 20

/**
 * Sends mails, one after another and in order, for as long as it takes: whoever adds one waits for nothing. Beyond
 * `maxMailsWaiting` the oldest is given up. What nobody gets is counted and logged, and the next mail says how many.
 */
export class MailQueue {
  readonly #options: MailQueueOptions
  readonly #times: MailTimes
  #waiting: { call: AnalyticsCall; since: number }[] = []
  #lost = 0
  #wake: (() => void) | null = null

  constructor(options: MailQueueOptions) {
    this.#options = options
    this.#times = options.times ?? defaultMailTimes
  }

  /** The oldest first. */
  get waiting(): AnalyticsCall[] {
    return this.#waiting.map(({ call }) => call)
  }

  /** One that waits already is not added again. */
  add(calls: readonly AnalyticsCall[]): void {
    const { log, now } = this.#options
    for (const call of calls) {
      if (this.#waiting.some((each) => each.call.messageId === call.messageId)) continue
      this.#waiting.push({ call, since: now() })
      const oldest = this.#waiting.length > maxMailsWaiting ? this.#waiting.shift() : null
      if (oldest) {
        this.#lose('omitted')
        log.error(`a mail is not sent, for ${maxMailsWaiting} later ones wait: ${subjectOf(oldest.call)}`)
      }
    }
    this.#wake?.()
  }

  /** Until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#options
    let failures = 0
    while (!signal.aborted) {
      const [next] = this.#waiting
      if (!next) {
        await this.#added(signal)
        continue
      }
      const trouble = await this.#attempt(next, signal)
      if (trouble === null) {
        if (failures > 0) log.info('mails are sent again')
        failures = 0
        continue
      }
      if (signal.aborted) break
      if (failures === 0) log.warn(`mails are not sent for now, and tried again: ${trouble}`)
      await pause(backOff(failures++, this.#times.initialMs, this.#times.maxMs), signal)
    }
    if (this.#waiting.length > 0) log.warn(`${this.#waiting.length} mails were not sent before the end`)
  }

  /** Null where it is done with, else why not. */
  async #attempt(next: { call: AnalyticsCall; since: number }, signal: AbortSignal): Promise<string | null> {
    const { mailer, log, count, now } = this.#options
    const lost = this.#lost
    const { outcome, detail, refusedFor = [] } = await mailer.send(mailOf(next.call, lost), signal)
    const isExpired = outcome === 'failed' && now() - next.since >= this.#times.giveUpMs
    if (outcome === 'failed' && !isExpired) return detail
    this.#waiting = this.#waiting.filter((each) => each !== next)
    if (outcome === 'taken') {
      this.#lost -= lost
      count('taken')
      if (refusedFor.length > 0) log.error(`the mail server refuses ${refusedFor.join(', ')}: ${detail}`)
      return null
    }
    this.#lose(isExpired ? 'expired' : 'refused')
    log.error(`a mail was not sent: ${subjectOf(next.call)}: ${detail}`)
    return isExpired ? detail : null
  }

  #lose(outcome: MailOutcome): void {
    this.#lost++
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

const subjectOf = (call: AnalyticsCall): string => mailOf(call).subject
