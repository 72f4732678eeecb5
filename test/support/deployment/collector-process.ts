import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { startChild } from '../../../src/local/child-process.ts'
import { type Deployment } from './deployment.ts'
import { until } from '../until.ts'
import { bareEnv } from './bare-env.ts'

/** `postrider collector` in a process of its own, as a user runs it; gone after the test. */
export interface CollectorProcess {
  port: number
  isRunning(): boolean
  /** Resident memory now, and the most that it ever was, in MB. */
  memory(): { rssMb: number; peakMb: number }
}

const entry = join(import.meta.dirname, '..', '..', '..', 'src', 'main.ts')

/** Starts it and waits until it takes work. */
export async function startCollectorProcess(
  t: TestContext,
  deployment: Deployment,
): Promise<CollectorProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  const logFile = join(folder, 'collector.log')
  const child = await startChild({
    command: process.execPath,
    args: [entry, 'collector'],
    cwd: folder,
    env: { ...bareEnv, ...deployment.env, COLLECTOR_PORT: '0', METRICS_PORT: '0' },
    logFile,
  })
  t.after(async () => {
    await child.kill()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  const portIn = (text: string) =>
    Number(new RegExp(`${text} at http://localhost:(\\d+)`).exec(readFileSync(logFile, 'utf8'))?.[1] ?? 0)
  await until(
    async () => {
      if (!child.isRunning()) throw new Error(`it ended: ${readFileSync(logFile, 'utf8')}`)
      const metrics = portIn('metrics')
      if (metrics === 0 || portIn('collecting') === 0) return false
      return fetch(`http://127.0.0.1:${metrics}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      )
    },
    60_000,
    'readiness',
  )
  return {
    port: portIn('collecting'),
    isRunning: () => child.isRunning(),
    memory() {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
      const mb = (field: string) =>
        Math.round(Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)![1]) / 1_024)
      return { rssMb: mb('VmRSS'), peakMb: mb('VmHWM') }
    },
  }
}
