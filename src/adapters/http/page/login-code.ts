import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

export const loginMinutes = 15

/**
 * Logs in once, and soon, in place of ADMIN_TOKEN: for a link that can be printed to a terminal, whose text may be kept
 * for long.
 */
export class LoginCode {
  readonly text = randomBytes(32).toString('base64url')
  readonly #expiresAt: number
  #isUsed = false

  /** @param now epoch ms */
  constructor(now: number) {
    this.#expiresAt = now + loginMinutes * 60_000
  }

  /** Whether it is the code, in time and for the first time. */
  use(given: string, now: number): boolean {
    const digest = (text: string) => createHash('sha256').update(text).digest()
    if (!timingSafeEqual(digest(given), digest(this.text))) return false
    if (this.#isUsed || now >= this.#expiresAt) return false
    this.#isUsed = true
    return true
  }
}
