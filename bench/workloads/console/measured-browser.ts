import { spawnSync } from 'node:child_process'
import type { Browser, BrowserContext } from 'playwright-core'
import { launchBrowser } from '../../../test/support/browser/chromium.ts'
import { bindsCores } from '../../child.ts'
import { measuredCore, otherCore } from '../../rig.ts'
import { adminToken } from './console-process.ts'

/** The browser of the tests, on the measured core. */
export async function startBrowser(): Promise<Browser> {
  // A process takes over the core of the thread that starts it.
  bindSelf(measuredCore)
  try {
    return await launchBrowser()
  } finally {
    bindSelf(otherCore)
  }
}

function bindSelf(core: number): void {
  if (bindsCores) spawnSync('taskset', ['-pc', String(core), String(process.pid)])
}

/** A browser that has seen nothing of the console yet, logged in. */
export async function freshContext(browser: Browser, url: string): Promise<BrowserContext> {
  const context = await browser.newContext({ baseURL: url, viewport: { width: 1_440, height: 900 } })
  const response = await context.request.post('/api/v1/session', { data: { token: adminToken } })
  if (response.status() !== 200) throw new Error(`the console refuses its token: ${response.status()}`)
  return context
}
