import assert from 'node:assert/strict'
import { after, type TestContext } from 'node:test'
import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { adminToken } from '../consoles.ts'
import { launchBrowser } from './chromium.ts'
import { until } from '../until.ts'

let launching: Promise<Browser> | null = null
/** One for all tests of a process. */
const browser = (): Promise<Browser> => (launching ??= launchBrowser())
after(async () => (await launching)?.close())

export interface WatchedPage {
  page: Page
  context: BrowserContext
  /** What went wrong so far: console errors, CSP reports, unhandled rejections, requests to other hosts. */
  faults: string[]
  /**
   * Takes away faults that a test provoked; asserts that there are some, and that all match. Those of them that come later are
   * taken too: what a page asked at one time is answered one after another.
   */
  expectFaults(pattern: RegExp): void
}

interface OpenOptions {
  /** To log in with; null: nobody is logged in. ADMIN_TOKEN unless given. */
  token?: string | null
  scheme?: 'light' | 'dark'
  width?: number
  /** Another host that it may be led to. */
  otherUrl?: string
}

/** Opens a page in a fresh context, at `path` of the console. Anything that goes wrong in it fails the test at its end. */
export async function openPage(
  t: TestContext,
  url: string,
  path: string,
  { token = adminToken, scheme = 'light', width = 1_440, otherUrl }: OpenOptions = {},
): Promise<WatchedPage> {
  const context = await (
    await browser()
  ).newContext({
    baseURL: url,
    colorScheme: scheme,
    viewport: { width, height: 900 },
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  const faults: string[] = []
  const expected: RegExp[] = []
  const assertExpected = () => {
    const others = faults.splice(0).filter((fault) => !expected.some((pattern) => pattern.test(fault)))
    assert.deepEqual(others, [], 'nothing went wrong in the browser')
  }
  t.after(async () => {
    await context.close()
    assertExpected()
  })
  if (token !== null) {
    const response = await context.request.post('/api/v1/session', { data: { token } })
    assert.equal(response.status(), 200)
  }
  const page = await context.newPage()
  await watch(page, otherUrl === undefined ? [url] : [url, otherUrl], faults)
  await page.goto(path)
  return {
    page,
    context,
    faults,
    expectFaults(pattern) {
      assert.ok(faults.length > 0, 'there are faults')
      expected.push(pattern)
      assertExpected()
    },
  }
}

async function watch(page: Page, urls: readonly string[], faults: string[]): Promise<void> {
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      faults.push(`console: ${message.text()} ${message.location().url}`)
  })
  page.on('pageerror', (error) => faults.push(`page: ${error.message}`))
  page.on('request', (request) => {
    const other = request.url()
    if (!urls.some((url) => other.startsWith(`${url}/`)) && !other.startsWith('data:'))
      faults.push(`request to ${other}`)
  })
  await page.exposeFunction('reportViolation', (text: string) => void faults.push(`CSP: ${text}`))
  // As text: these tests are compiled without the browser's types.
  await page.addInitScript(`document.addEventListener('securitypolicyviolation', (event) =>
    reportViolation(event.violatedDirective + ' ' + event.blockedURI))`)
}

type Violation = Awaited<ReturnType<AxeBuilder['analyze']>>['violations'][number]

/** For a page in which axe has looked before: its 560 KB are read once. */
const contrastViolations =
  "axe.run(document, { runOnly: ['color-contrast'] }).then(({ violations }) => violations)"

/** Asserts that axe finds nothing, in both colour schemes. */
export async function assertAccessible(page: Page): Promise<void> {
  // Its other mode also looks into frames of other hosts, on a blank page of its own: twice the CPU, and there are none.
  const axe = new AxeBuilder({ page }).setLegacyMode(true)
  const unseen = async (colorScheme: string) =>
    assert.deepEqual(await page.evaluate(unseenControls), [], `controls with less than 3:1, ${colorScheme}`)
  await page.emulateMedia({ colorScheme: 'light' })
  assert.deepEqual((await axe.analyze()).violations.map(textOf), [], 'light')
  await unseen('light')
  // A scheme changes colours, and nothing else.
  await page.emulateMedia({ colorScheme: 'dark' })
  const inDark = (await page.evaluate(contrastViolations)) as Violation[]
  assert.deepEqual(inDark.map(textOf), [], 'dark')
  await unseen('dark')
}

const textOf = ({ id, nodes }: Violation): string => `${id}: ${nodes.map(({ html }) => html).join(' ')}`

/**
 * Fields, buttons with a border, and what of several is chosen, whose edge and fill both have less than 3:1 to what is around
 * them (WCAG 1.4.11), which axe does not measure.
 */
const unseenControls = `(() => {
  const parse = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number)
  const over = ([r, g, b, a = 1], under) => [r, g, b].map((part, index) => part * a + under[index] * (1 - a))
  const light = (color) => {
    const [r, g, b] = color.map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b)
    return (high + 0.05) / (low + 0.05)
  }
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = parse(getComputedStyle(each).backgroundColor)
      if ((color[3] ?? 1) === 1) return color.slice(0, 3)
    }
    return [255, 255, 255]
  }
  const controls = 'input:not([type=checkbox], [type=radio], [type=hidden], [type=file]), select, textarea, .button, [aria-pressed=true]'
  return [...document.querySelectorAll(controls)].flatMap((element) => {
    const { borderTopWidth, borderTopColor, backgroundColor, boxShadow } = getComputedStyle(element)
    const around = behind(element.parentElement)
    const isPlain = parseFloat(borderTopWidth) === 0 || (parse(borderTopColor)[3] ?? 1) === 0
    // Words alone are a button, too.
    if (!element.checkVisibility() || element.disabled || (isPlain && element.matches('.button'))) return []
    const edges = [backgroundColor, ...(isPlain ? [] : [borderTopColor]), ...(boxShadow === 'none' ? [] : [/^[^)]+\\)/.exec(boxShadow)[0]])]
    const best = Math.max(...edges.map((color) => contrast(over(parse(color), around), around)))
    return best < 3 ? [best.toFixed(2) + ' ' + element.outerHTML.slice(0, 120)] : []
  })
})()`

/** Nothing is wider than the window, and no table wider than the frame that it scrolls in: its last column is seen. */
export async function assertFits(page: Page, what?: string): Promise<void> {
  let wider: unknown = null
  // A window that became narrower a moment ago is laid out in the next frame.
  const fits = async () => ((wider = await page.evaluate(tooWide)) as string[]).length === 0
  await until(fits, 5_000).catch(() => assert.deepEqual(wider, [], what))
}

const tooWide = `[
  ...(document.documentElement.scrollWidth > innerWidth ? ['the page'] : []),
  ...[...document.querySelectorAll('.table-frame')]
    .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
    .map((frame) => frame.ariaLabel),
]`

/**
 * Presses Tab until what has the focus has this name, as a person without a mouse would. A page may be on its way still: it is
 * gone round for ten seconds at least.
 */
export async function tabTo(page: Page, name: string | RegExp): Promise<void> {
  const seen: string[] = []
  const until = performance.now() + 10_000
  for (let count = 0; count < 200 || performance.now() < until; count++) {
    await page.keyboard.press('Tab')
    const found = (await page.evaluate(nameOfFocus)) as string
    if (typeof name === 'string' ? found === name : name.test(found)) return
    seen.push(found)
  }
  assert.fail(`Tab does not reach ${name}; it reaches ${[...new Set(seen)].join(' | ')}`)
}

const nameOfFocus = `(() => {
  const element = document.activeElement
  return (element?.getAttribute('aria-label') ?? element?.labels?.[0]?.innerText ?? element?.innerText ?? '').trim()
})()`
