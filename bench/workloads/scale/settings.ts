import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { SettingsLog } from '../../../src/adapters/folded-log/settings-log.ts'
import { p99Of, round2 } from '../../measure/figures.ts'
import { deploy, measuredCore, type Deployment, type Servers } from '../../rig.ts'
import { atMost, type Goal, type Row, type Workload } from '../workload.ts'
import { startProduct } from './product-process.ts'
import { writeSettings } from './settings-events.ts'

const parts = ['forwarder', 'collector', 'console']
const lists = ['/destinations', '/sources', '/system', '/overview', '/settings/history', '/replays']
const questions = 20

/** How long each part takes to start with very many settings, and what it holds then. */
export const settings: Workload = {
  name: 'settings',
  summary: 'a start of forwarder, collector and console with 100,000 destinations and 10,000 sources',
  sizes: { calls: 100_000 },
  quick: { calls: 1_000 },
  run: async (servers: Servers, { calls: destinations = 100_000 }) => {
    const folder = await mkdtemp(join(tmpdir(), 'postrider-bench-'))
    const deployment = await deploy(servers)
    try {
      const events = await writeSettings(deployment, destinations)
      await deployment.close()
      const foldSeconds = await fold(deployment)
      const rows: Row[] = [{ what: 'fold of the log alone', unit: 's', value: foldSeconds }]
      const goals: Goal[] = [atMost('fold of the log, s', foldSeconds, 10)]
      const detail: Record<string, object> = {}
      for (const part of parts) {
        const found = await start(part, { ...deployment.env, STORE_PATH: folder })
        goals.push(atMost(`${part} ready after, s`, found.readySeconds, 10))
        rows.push(
          { what: `${part}, ready`, unit: 's', value: found.readySeconds },
          { what: `${part}, resident memory`, unit: 'MB', value: found.memory.now },
          { what: `${part}, at most`, unit: 'MB', value: found.memory.peak },
          { what: `${part}, /metrics`, unit: 'KB', value: Math.round(found.metrics.bytes / 1_000) },
          { what: `${part}, /metrics takes`, unit: 'ms', value: found.metrics.ms },
          ...found.answers.map(({ path, ms }) => ({ what: `p99 of ${path}`, unit: 'ms', value: ms })),
        )
        detail[part] = found
      }
      return {
        rows,
        ratio: null,
        goal: null,
        goals,
        verdict: null,
        detail: { destinations, events, ...detail },
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  },
}

async function fold({ kafka, topics, config, codecs }: Deployment): Promise<number> {
  const log = new SettingsLog({
    ...{ kafka, topic: topics.settings, groupId: config.groupId, codec: codecs.settings },
    log: pino({ level: 'warn' }, pino.destination(2)),
  })
  const began = performance.now()
  await log.start()
  const seconds = round2((performance.now() - began) / 1_000)
  await log.close()
  return seconds
}

async function start(part: string, env: Record<string, string>) {
  const product = await startProduct(part, env, measuredCore)
  try {
    const metrics = await product.fetch('/metrics')
    const answers = []
    for (const path of part === 'console' ? lists : []) {
      const times = []
      let bytes = 0
      let status = 0
      for (let left = questions; left > 0; left--) {
        const answer = await product.ask(path)
        times.push(answer.ms)
        bytes = answer.bytes
        status = answer.status
      }
      answers.push({ path, ms: p99Of(times), first: times[0], bytes, status })
    }
    return { readySeconds: product.readySeconds, memory: await product.memoryMb(), metrics, answers }
  } finally {
    await product.end()
  }
}
