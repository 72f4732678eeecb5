import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../log.ts'
import type { TokenRefusal } from './authorization.ts'

const windowMs = 60_000
/** Refused requests per window that are logged one by one, and wrong tokens that are answered without delay. */
const free = 10
const delayMs = 1_000
/** Beyond them wrong tokens get no answer at all. */
const maxWaiting = 100

/**
 * Makes guessing tokens cheap for us: beyond a few a minute wrong tokens share a line of the log, and wait for
 * their answers, on connections that end with them. The right token never waits. That guessing is hopeless is due to
 * the token's length alone.
 */
export class RefusedTokens {
  readonly #log: Logger
  #requests = 0
  #wrong = 0
  #waiting = 0
  #window: NodeJS.Timeout | null = null

  constructor(log: Logger) {
    this.#log = log
  }

  /** Counts a refused request. Resolves when it may be answered: false, at once, when it gets no answer. */
  async refused(ip: string, path: string, token: TokenRefusal): Promise<boolean> {
    this.#window ??= setTimeout(() => this.close(), windowMs).unref()
    if (++this.#requests <= free) this.#log.warn({ ip, path, token }, 'a request without the right token')
    if (token !== 'wrong' || ++this.#wrong <= free) return true
    if (this.#waiting >= maxWaiting) return false
    this.#waiting++
    await sleep(delayMs)
    this.#waiting--
    return true
  }

  /** Ends the window: reports what had no line of its own, and counts again from none. */
  close(): void {
    clearTimeout(this.#window ?? undefined)
    this.#window = null
    const [requests, wrong] = [this.#requests - free, this.#wrong]
    this.#requests = this.#wrong = 0
    if (requests > 0)
      this.#log.warn({ requests, wrong }, 'more requests without the right token within a minute')
  }
}
