import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { TestContext } from 'node:test'
import pino from 'pino'
import { contextOf } from '../../../src/cli/context.ts'
import { openCollector } from '../../../src/cli/open-collector.ts'
import { openForwarder } from '../../../src/cli/open-forwarder.ts'
import { openReports } from '../../../src/cli/process-reports.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { superviseParts } from '../../../src/supervisor.ts'
import { bareEnv } from '../deployment/bare-env.ts'
import { endWithThisProcess } from '../deployment/command-rig.ts'
import type { Deployment } from '../deployment/deployment.ts'

const parts = { collector: openCollector, forwarder: openForwarder }
export type PartName = keyof typeof parts

/** A process whose heartbeats ceased is missed after three of these. */
const heartbeatMs = 1_000

export interface PartProcess {
  /** Of a collector, once it takes calls. */
  port: Promise<number>
  /** SIGKILL, SIGTERM, SIGSTOP and SIGCONT; the first two resolve once it has ended. */
  kill(): Promise<void>
  stop(): Promise<void>
  freeze(): void
  thaw(): void
}

/** A collector or a forwarder in a process of its own, as a user's but with a heartbeat a second: it is soon missed. */
export function startPart(t: TestContext, { env }: Deployment, name: PartName): PartProcess {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), name], {
    env: { ...bareEnv, ...env, LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  endWithThisProcess(child)
  const ended = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  let output = ''
  const port = new Promise<number>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      const found = /collecting at http:\/\/localhost:(\d+)/.exec(output)?.[1]
      if (found !== undefined) resolve(Number(found))
    })
  })
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    await ended
  }
  return {
    port,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
  }
}

async function main(name: PartName): Promise<void> {
  const stopping = new AbortController()
  process.once('SIGTERM', () => stopping.abort())
  const context = contextOf({ config: loadConfig(process.env), log: pino() })
  const { part, report } = parts[name](context)
  await superviseParts([openReports(context, [report], heartbeatMs), part], stopping.signal)
}

if (import.meta.main) await main(process.argv[2] as PartName)
