import type { Browser, BrowserContext } from 'playwright-core'
import { pagePaths, pathTo, type PageName } from '../../../src/console/page-paths.ts'
import { median } from '../../measure/figures.ts'
import { freshContext } from './measured-browser.ts'

/** As much slower than this machine as a cheap laptop or a telephone. */
const throttling = 4
/** Nothing is loading for as long: the page has everything, in ms. */
const settledMs = 300
/** The shell, and a page without data in it. */
const emptyPath = '/nothing-is-here'

/** Since the navigation began, in ms. */
interface Load {
  /** The page's heading stands and is painted, and the page is free to take a click. */
  interactive: number
  /** The same, with all of its data. */
  complete: number
  longestTask: number
}

export interface PageLoads {
  name: string
  path: string
  /** With nothing in the browser's cache. */
  first: Load[]
  /** With the scripts in the cache. */
  again: Load[]
}

/** Ids of the things that pages are about. */
export type PageParams = Partial<Record<PageName, Record<string, string>>>

/** Loads every page of the console in turns, and before them one without data. */
export async function loadPages(
  browser: Browser,
  url: string,
  params: PageParams,
  rounds: number,
): Promise<PageLoads[]> {
  const names = (Object.keys(pagePaths) as PageName[]).filter((name) => name !== 'login')
  const all = [
    { name: 'shell without data', path: emptyPath },
    ...names.map((name) => ({ name, path: knownPath(name, params[name]) })),
  ].map((page): PageLoads => ({ ...page, first: [], again: [] }))
  // The console compiles its own code at its first answers: these are not counted.
  const warming = await freshContext(browser, url)
  for (const page of all) await load(warming, page.path)
  await warming.close()
  for (let round = 0; round < rounds; round++)
    for (const page of all) {
      const [first, again] = await loadTwice(browser, url, page.path)
      page.first.push(first)
      page.again.push(again)
    }
  return all
}

function knownPath(name: PageName, params: Record<string, string> = {}): string {
  const path = pathTo(name, params)
  if (path.includes('undefined')) throw new Error(`the page ${name} needs an id: give it one in console.ts`)
  return path
}

async function loadTwice(browser: Browser, url: string, path: string): Promise<[Load, Load]> {
  const context = await freshContext(browser, url)
  try {
    return [await load(context, path), await load(context, path)]
  } finally {
    await context.close()
  }
}

async function load(context: BrowserContext, path: string): Promise<Load> {
  const page = await context.newPage()
  const session = await context.newCDPSession(page)
  await session.send('Emulation.setCPUThrottlingRate', { rate: throttling })
  await page.addInitScript(noteTimes)
  await page.goto(path, { waitUntil: 'commit' })
  const load = (await page.evaluate(settled)) as Load
  await page.close()
  return load
}

/** Runs in the page. As text: the benchmarks are compiled without the browser's types. */
const noteTimes = `
  globalThis.times = { interactive: null, complete: null, longestTask: 0 }
  const look = () => {
    const isThere = document.querySelector('main h1') !== null
    if (isThere && times.interactive === null) {
      times.interactive = Infinity
      afterFrame(() => (times.interactive = performance.now()))
    }
    const isComplete = isThere && document.querySelector('main .loading') === null
    if (!isComplete) times.complete = null
    else if (!wasComplete) afterFrame(() => (times.complete = performance.now()))
    wasComplete = isComplete
  }
  let wasComplete = false
  const afterFrame = (act) => requestAnimationFrame(() => setTimeout(act))
  new MutationObserver(look).observe(document, { childList: true, subtree: true })
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) times.longestTask = Math.max(times.longestTask, duration)
  }).observe({ type: 'longtask', buffered: true })
`

const settled = `new Promise((resolve) => {
  const ask = () => {
    const isOver = times.complete !== null && performance.now() - times.complete > ${settledMs}
    isOver ? resolve(times) : setTimeout(ask, 50)
  }
  ask()
})`

export const p50 = (loads: readonly Load[], field: keyof Load): number =>
  Math.round(median(loads.map((load) => load[field])))

/** For people: p50 of each page, in ms. */
export function tableOf(pages: readonly PageLoads[]): string[] {
  const columns: [string, (page: PageLoads) => number][] = [
    ['interactive', ({ first }) => p50(first, 'interactive')],
    ['with data', ({ first }) => p50(first, 'complete')],
    ['longest task', ({ first }) => p50(first, 'longestTask')],
    ['at most', ({ first }) => Math.round(Math.max(...first.map(({ interactive }) => interactive)))],
    ['cached', ({ again }) => p50(again, 'interactive')],
  ]
  const line = (name: string, cells: string[]) =>
    `  ${name.padEnd(20)}${cells.map((cell) => cell.padStart(14)).join('')}`
  return [
    line(
      'page, ms',
      columns.map(([head]) => head),
    ),
    ...pages.map((page) =>
      line(
        page.name,
        columns.map(([, value]) => String(value(page))),
      ),
    ),
  ]
}
