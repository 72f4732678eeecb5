import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

/** Logs in once, in place of ADMIN_TOKEN: for a link that can be printed to a terminal. */
export class LoginCode {
  readonly text = randomBytes(32).toString('base64url')
  #isUsed = false

  /** Whether it is the code, for the first time. */
  use(given: string): boolean {
    const digest = (text: string) => createHash('sha256').update(text).digest()
    if (this.#isUsed || !timingSafeEqual(digest(given), digest(this.text))) return false
    this.#isUsed = true
    return true
  }
}
