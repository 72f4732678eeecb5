import { printable } from '../output.ts'
import type { ReceivedWebhook } from '../receive.ts'
import type { Screen } from './screen.ts'

/** More lines than a person can follow are counted instead. */
const linesASecond = 20

/** What arrives at the demo's receiver: a line each on the screen, and callers that wait for one of them are notified. */
export class Arrivals {
  readonly #screen: Screen
  readonly #awaited = new Map<string, () => void>()
  #lines = 0
  #more = { verified: 0, others: 0 }
  #second: NodeJS.Timeout | null = null

  constructor(screen: Screen) {
    this.#screen = screen
  }

  take(webhook: ReceivedWebhook): void {
    this.#second ??= setTimeout(() => this.#endSecond(), 1_000).unref()
    if (this.#lines < linesASecond) {
      this.#lines++
      this.#screen.say(arrivalLine(webhook))
    } else {
      this.#more[webhook.signature === 'verified' ? 'verified' : 'others']++
    }
    if (webhook.messageId !== null && webhook.signature === 'verified')
      this.#awaited.get(webhook.messageId)?.()
  }

  /** Resolves to those that did not arrive with a verified signature before the signal aborts. */
  async missing(messageIds: readonly string[], signal: AbortSignal): Promise<string[]> {
    const waiting = new Set(messageIds)
    await new Promise<void>((resolve) => {
      const done = () => {
        signal.removeEventListener('abort', done)
        for (const id of messageIds) this.#awaited.delete(id)
        resolve()
      }
      for (const id of messageIds)
        this.#awaited.set(id, () => {
          waiting.delete(id)
          if (waiting.size === 0) done()
        })
      signal.addEventListener('abort', done)
      if (signal.aborted || waiting.size === 0) done()
    })
    return [...waiting]
  }

  #endSecond(): void {
    const { verified, others } = this.#more
    if (verified + others > 0)
      this.#screen.say(
        `  … and ${verified + others} more${others === 0 ? ', all verified' : `, ${others} NOT verified`}`,
      )
    this.#lines = 0
    this.#more = { verified: 0, others: 0 }
    this.#second = null
  }
}

/** Time, type, user, what it is about, and what its signature is worth, in columns. */
function arrivalLine(webhook: ReceivedWebhook): string {
  const time = new Date(webhook.at).toISOString().slice(11, 23)
  const type = webhook.type ?? `${webhook.method}, no call`
  const columns = [type.padEnd(9), (webhook.userId ?? '').padEnd(10), (webhook.event ?? '').padEnd(18)]
  return printable(`  ${time}  ${columns.join(' ')} signature ${webhook.signature}`)
}
