// Takes pictures of the web console: each page at three widths, in both colour schemes.
//
//   npm run screenshots -- /tmp/pictures                         of what `npm start` runs in this folder
//   npm run screenshots -- /tmp/pictures --url http://localhost:8090 --page /destinations --page /destinations/demo
//   npm run screenshots -- --docs                                those of docs/images, of `npm start -- --demo-traffic`
//
// ADMIN_TOKEN is taken from the environment, or from .postrider/dev.env.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { BrowserContext, Page } from 'playwright-core'
import { pagePaths } from '../src/console/page-paths.ts'
import { launchBrowser } from '../test/support/browser/chromium.ts'

const schemes = ['light', 'dark'] as const
/** Until plots are drawn, and what is live has come, in ms. */
const settleMs = 1_500
/** A tail begins at what comes from then on. */
const liveSettleMs = 15_000
const docsImages = 'docs/images'
/** Those of the docs; their names are the files'. */
const docsPages = {
  overview: '/',
  destination: '/destinations/demo-failing',
  'dead-letters': '/dead-letters',
  live: '/live?source=demo-shop',
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    url: { type: 'string' },
    page: { type: 'string', multiple: true },
    docs: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})
const usage = 'npm run screenshots -- <folder> [--url URL] [--page PATH …], or --docs'
if (values.help) {
  console.log(usage)
  process.exit(0)
}
const folder = values.docs ? docsImages : positionals[0]
if (folder === undefined) {
  console.error(`give a folder: ${usage}`)
  process.exit(2)
}

const left = await readFile('.postrider/dev.env', 'utf8').catch(() => '')
const leftValue = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(left)?.[1]
const token = process.env.ADMIN_TOKEN ?? leftValue('ADMIN_TOKEN')
const url = values.url ?? `http://localhost:${leftValue('CONSOLE_PORT') ?? 8090}`
/** Those without anything in their path that has to be known. */
const plainPages = Object.values(pagePaths).filter((path) => !path.includes(':') && path !== pagePaths.login)
const nameOf = (path: string) => (path === '/' ? 'overview' : path.slice(1).replaceAll(/[^\w-]+/g, '-'))
const pages: Record<string, string> = values.docs
  ? docsPages
  : Object.fromEntries((values.page ?? plainPages).map((path) => [nameOf(path), path]))

await mkdir(folder, { recursive: true })
const browser = await launchBrowser()
try {
  for (const width of values.docs ? [1_280] : [1_440, 768, 390])
    for (const colorScheme of schemes) {
      const viewport = { width, height: values.docs ? 800 : 900 }
      const context = await browser.newContext({ baseURL: url, colorScheme, viewport })
      await logIn(context)
      const page = await context.newPage()
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(path)
        await page.waitForTimeout(path.startsWith(pagePaths.live) ? liveSettleMs : settleMs)
        if (values.docs) await takeSmall(page, join(folder, `${name}-${colorScheme}.webp`))
        else {
          const file = join(folder, `${name}-${width}-${colorScheme}.png`)
          await page.screenshot({ path: file, fullPage: true })
        }
      }
      await context.close()
    }
} finally {
  await browser.close()
}

/** Ends the script with a reason where that is not possible. */
async function logIn(context: BrowserContext): Promise<void> {
  const response = await context.request.post('/api/v1/session', { data: { token } }).catch(() => null)
  if (response?.ok()) return
  console.error(
    response === null
      ? `nothing answers at ${url}: start it by npm start, or give another --url`
      : `ADMIN_TOKEN does not log in at ${url}: status ${response.status()}`,
  )
  await browser.close()
  process.exit(1)
}

/** What a screen shows of it, as WebP, which the browser itself encodes. */
async function takeSmall(page: Page, file: string): Promise<void> {
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 75 })
  await writeFile(file, Buffer.from(data, 'base64'))
}
