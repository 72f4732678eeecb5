import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { bindsCores, outputFile } from '../../child.ts'

const main = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
const checkMs = 20
/** It is told to be ready within this, in ms, or never. */
const readyWithinMs = 10 * 60_000
export const adminToken = 'a-token-of-the-benchmarks-0123456789abcdef'

/** One part of the product as users run it, and what is seen of it from outside. */
export interface ProductProcess {
  /** Until `/readyz` answered 200, in s. */
  readySeconds: number
  fetch(path: string): Promise<Fetched>
  /** Of the console's API. */
  ask(path: string): Promise<Fetched>
  /** Resident, now and at its highest so far. */
  memoryMb(): Promise<{ now: number; peak: number }>
  end(): Promise<void>
}

export interface Fetched {
  status: number
  bytes: number
  ms: number
}

export async function startProduct(
  part: string,
  env: Record<string, string>,
  core: number,
): Promise<ProductProcess> {
  const [metricsPort, port] = [await freePort(), await freePort()]
  const node = [process.execPath, main, part]
  const [program, ...rest] = bindsCores ? ['taskset', '-c', String(core), ...node] : node
  const began = performance.now()
  const child = spawn(program!, rest, {
    env: {
      ...{ PATH: process.env.PATH, ...env, ADMIN_TOKEN: adminToken, METRICS_HOST: '127.0.0.1' },
      ...{ METRICS_PORT: String(metricsPort), CONSOLE_PORT: String(port), COLLECTOR_PORT: String(port) },
    },
    stdio: ['ignore', openSync(outputFile, 'a'), 'inherit'],
  })
  const exited = once(child, 'exit')
  const fetchFrom = async (url: string): Promise<Fetched> => {
    const from = performance.now()
    const response = await fetch(url, { headers: { authorization: `Bearer ${adminToken}` } })
    const bytes = (await response.arrayBuffer()).byteLength
    return { status: response.status, bytes, ms: Math.round((performance.now() - from) * 10) / 10 }
  }
  const monitoring = `http://127.0.0.1:${metricsPort}`
  const isReady = () =>
    fetchFrom(`${monitoring}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    )
  while (!(await isReady())) {
    if (child.exitCode !== null)
      throw new Error(`postrider ${part} ended with ${child.exitCode}: ${outputFile}`)
    if (performance.now() - began > readyWithinMs) {
      child.kill('SIGKILL')
      throw new Error(`postrider ${part} was not ready in time: ${outputFile}`)
    }
    await delay(checkMs)
  }
  const readySeconds = Math.round((performance.now() - began) / 10) / 100
  return {
    readySeconds,
    fetch: (path) => fetchFrom(monitoring + path),
    ask: (path) => fetchFrom(`http://127.0.0.1:${port}/api/v1${path}`),
    async memoryMb() {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '')
      const mb = (name: string) =>
        Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1_024)
      return { now: mb('VmRSS'), peak: mb('VmHWM') }
    },
    async end() {
      child.kill('SIGTERM')
      await exited
    },
  }
}

/** Free now; nothing else takes ports here meanwhile. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}
