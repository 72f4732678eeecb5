import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deadLetter, delivery } from '../../../test/support/replay/dead-letters.ts'
import { round2 } from '../../measure/figures.ts'
import { deploy, otherCore, type Deployment, type Servers } from '../../rig.ts'
import { atMost, type Workload } from '../workload.ts'
import { startConsole, type ConsoleProcess } from './console-process.ts'
import { heapTableOf, watchLiveHeap } from './live-heap.ts'
import { startBrowser } from './measured-browser.ts'
import { loadPages, p50, tableOf, type PageParams } from './page-loads.ts'
import { writeLedger } from './statistics.ts'

const destinations = 20
const deliveries = 200_000
const deadLetters = 300
/** What the Live page may hold. */
const maxRows = 500
const interactiveMs = 500
const heapGrowthMb = 1

/** The web page in a browser of its own core: how soon it can be used, and whether it grows. */
export const webConsole: Workload = {
  name: 'console',
  summary:
    'each page of the console at 4 × CPU throttling, beside its shell without data; the Live page at 1,000 calls/s',
  sizes: { rounds: 7, minutes: 10 },
  quick: { rounds: 1, minutes: 1 },
  run: async (servers: Servers, { rounds = 7, minutes = 10 }) => {
    const folder = await mkdtemp(join(tmpdir(), 'postrider-bench-'))
    const deployment = await deploy(servers)
    for (let index = 0; index < destinations; index++)
      await deployment.destination(`d${index}`, 'shop', ['http://127.0.0.1:9/a', 'http://127.0.0.1:9/b'])
    await writeLedger(deployment, deliveries)
    await writeDeadLetters(deployment)
    const server = startConsole({ ...deployment.env, STORE_PATH: folder }, otherCore)
    const browser = await startBrowser()
    try {
      const params = await prepare(server)
      const pages = await loadPages(browser, server.url()!, params, rounds)
      const heap = await watchLiveHeap(browser, server.url()!, deployment, minutes, maxRows)
      const [empty, ...others] = pages
      const reference = p50(empty!.first, 'interactive')
      const slowest = others.toSorted((a, b) => p50(b.first, 'interactive') - p50(a.first, 'interactive'))[0]!
      const [before, after] = [heap.marks[0]!, heap.marks.at(-1)!]
      const slowestMs = p50(slowest.first, 'interactive')
      return {
        rows: [
          { what: 'shell without data, interactive, p50', unit: 'ms', value: reference },
          { what: `${slowest.name}, interactive, p50`, unit: 'ms', value: slowestMs },
          { what: `heap after ${minutes} min of Live`, unit: 'MB', value: after.heapMb },
          { what: 'calls sent meanwhile', unit: 'calls', value: heap.sent },
          { what: 'calls that the page showed or counted', unit: 'calls', value: heap.counted },
        ],
        ratio: slowestMs / reference,
        goal: null,
        goals: [
          atMost('slowest page, interactive, ms', slowestMs, interactiveMs),
          atMost('heap, growth, MB', round2(after.heapMb - before.heapMb), heapGrowthMb),
          atMost('rows held', Math.max(...heap.marks.map(({ rows }) => rows)), maxRows),
        ],
        verdict: null,
        text: ['', ...tableOf(pages), '', ...heapTableOf(heap)],
        detail: { rounds, minutes, pages, heap },
      }
    } finally {
      await browser.close()
      await server.end()
      await deployment.close()
      await rm(folder, { recursive: true, force: true })
    }
  },
}

async function writeDeadLetters({ codecs, topics, append }: Deployment): Promise<void> {
  await codecs.deadLetters.ready()
  const nth = (index: number) => {
    const of = delivery(`m-${index}`, { destinationId: `d${index % destinations}` })
    const fields = { failedAt: Date.now() - index * 1_000, delivery: of }
    return { key: `u-${index}`, value: codecs.deadLetters.encode(deadLetter(fields)) }
  }
  await append(topics.deadLetters, deadLetters, nth, 'dead letters')
}

/** Makes what pages are about that settings of the rig do not have, once the console has read the ledger. */
async function prepare(server: ConsoleProcess): Promise<PageParams> {
  const until = async <T>(ask: () => Promise<T | null>): Promise<T> => {
    for (;;) {
      const found = await ask()
      if (found !== null) return found
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  await until(async () => (await server.ask<{ asOf: string | null }>('/system'))?.asOf ?? null)
  const must = async (path: string, json: object): Promise<void> => {
    if ((await server.ask(path, json)) === null) throw new Error(`POST ${path} was refused`)
  }
  await must('/audiences', { id: 'vip', name: 'VIP', sourceId: 'shop' })
  await must('/traits', { id: 'plan', name: 'Plan', sourceId: 'shop' })
  await must('/deletions', { userIds: ['u-1'] })
  const newestOf = (path: string) =>
    until(async () => (await server.ask<{ data: { id: string }[] }>(`${path}?limit=1`))?.data[0] ?? null)
  return {
    destination: { id: 'd7' },
    source: { id: 'shop' },
    deadLetter: await newestOf('/dead-letters'),
    audience: { id: 'vip' },
    trait: { id: 'plan' },
    deletion: await newestOf('/deletions'),
  }
}
