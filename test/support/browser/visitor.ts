import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Locator, Page } from 'playwright-core'

/** A person at the page, whose clicks and key presses that act are counted. Text typed into a field is not. */
export class Visitor {
  readonly page: Page
  readonly #began = performance.now()
  #acts: string[] = []

  constructor(page: Page) {
    this.page = page
  }

  async click(what: Locator): Promise<void> {
    await what.waitFor()
    this.#acts.push(`click ${String(what)}`)
    await what.click()
  }

  async press(key: string): Promise<void> {
    this.#acts.push(`press ${key}`)
    await this.page.keyboard.press(key)
  }

  link = (name: string | RegExp): Locator => this.page.getByRole('link', { name })
  button = (name: string | RegExp): Locator => this.page.getByRole('button', { name })

  /** Asserts how much it took. How long depends on the machine, and is said only. */
  tookAtMost(t: TestContext, acts: number): void {
    const seconds = (performance.now() - this.#began) / 1_000
    t.diagnostic(`${this.#acts.length} clicks and keys in ${seconds.toFixed(1)} s, from the overview on`)
    assert.ok(this.#acts.length <= acts, this.#acts.join('\n'))
  }
}
