import { setTimeout as delay } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import { nthCall } from '../../calls.ts'
import { round2 } from '../../measure/figures.ts'
import type { Deployment } from '../../rig.ts'
import { freshContext } from './measured-browser.ts'

const perSecond = 1_000
/** How often what is due is produced, in ms. */
const everyMs = 50
const users = 10_000
const minuteMs = 60_000

/** What the page holds, garbage collected. */
export interface HeapMark {
  minute: number
  heapMb: number
  nodes: number
  listeners: number
  rows: number
}

export interface LiveHeap {
  marks: HeapMark[]
  sent: number
  /** Calls that the page showed or counted. */
  counted: number
}

/** The Live page while a source sends 1,000 calls a second. Its first mark is taken when it holds as much as it may. */
export async function watchLiveHeap(
  browser: Browser,
  url: string,
  deployment: Deployment,
  minutes: number,
  maxRows: number,
): Promise<LiveHeap> {
  const context = await freshContext(browser, url)
  const page = await context.newPage()
  const session = await context.newCDPSession(page)
  await page.goto('/live?source=shop')
  await page.getByText('live', { exact: true }).waitFor({ timeout: 30_000 })
  const ending = new AbortController()
  const sending = sendCalls(deployment, ending.signal)
  const rows = page.locator('.call')
  const mark = async (minute: number): Promise<HeapMark> => {
    await session.send('HeapProfiler.collectGarbage')
    const { usedSize } = await session.send('Runtime.getHeapUsage')
    const { nodes, jsEventListeners } = await session.send('Memory.getDOMCounters')
    const count = await rows.count()
    return { minute, heapMb: round2(usedSize / 1e6), nodes, listeners: jsEventListeners, rows: count }
  }
  try {
    await rows.nth(maxRows - 1).waitFor({ timeout: minuteMs })
    const began = performance.now()
    const marks = [await mark(0)]
    for (let minute = 1; minute <= minutes; minute++) {
      await delay(began + minute * minuteMs - performance.now())
      marks.push(await mark(minute))
    }
    const counts = await page.locator('.live-counts').innerText()
    ending.abort()
    return { marks, sent: await sending, counted: countedIn(counts) }
  } finally {
    ending.abort()
    await context.close()
  }
}

/** `61,234 calls · … · sampled: 550,000 more were not shown, …` */
const countedIn = (text: string): number =>
  [/^([\d,]+) calls/, /sampled: ([\d,]+) more/]
    .map((pattern) => Number((pattern.exec(text)?.[1] ?? '0').replaceAll(',', '')))
    .reduce((sum, count) => sum + count, 0)

/** Produces what is due, until it is told to end; how many calls that were. */
async function sendCalls(deployment: Deployment, ending: AbortSignal): Promise<number> {
  const began = performance.now()
  let sent = 0
  while (!ending.aborted) {
    const due = Math.floor(((performance.now() - began) / 1_000) * perSecond)
    const from = sent
    if (due > from) await deployment.produce(due - from, (index) => nthCall(from + index, users), 'live')
    sent = Math.max(sent, due)
    await delay(everyMs)
  }
  return sent
}

export const heapTableOf = ({ marks }: LiveHeap): string[] => [
  `  ${['minute', 'heap, MB', 'DOM nodes', 'listeners', 'rows'].map((head) => head.padStart(12)).join('')}`,
  ...marks.map(
    ({ minute, heapMb, nodes, listeners, rows }) =>
      `  ${[minute, heapMb.toFixed(2), nodes, listeners, rows].map((cell) => String(cell).padStart(12)).join('')}`,
  ),
]
