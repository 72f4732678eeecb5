import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { bindsCores } from '../../child.ts'

const main = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
export const adminToken = 'a-token-of-the-benchmarks-0123456789abcdef'

/** A console as users run it. */
export interface ConsoleProcess {
  pid: number
  /** Null until it listens. */
  url(): string | null
  /** The answer's body; null where there is none, or it is no success. Throws once the console has ended. */
  ask<T>(path: string, json?: object): Promise<T | null>
  /** Resident memory at its highest so far, in MB. */
  peakMb(): Promise<number>
  end(): Promise<void>
}

/** Starts `postrider console` on a core. It may take a while until it answers. */
export function startConsole(env: Record<string, string>, core: number): ConsoleProcess {
  const node = [process.execPath, main, 'console']
  const [program, ...rest] = bindsCores ? ['taskset', '-c', String(core), ...node] : node
  const child = spawn(program!, rest, {
    env: {
      ...{ PATH: process.env.PATH, ...env, ADMIN_TOKEN: adminToken },
      ...{ CONSOLE_PORT: '0', METRICS_PORT: '0' },
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const url = () => {
    const port = /admin API at http:\/\/[^:]+:(\d+)/.exec(output)?.[1]
    return port === undefined ? null : `http://127.0.0.1:${port}`
  }
  return {
    pid: child.pid!,
    url,
    async ask<T>(path: string, json?: object) {
      if (child.exitCode !== null) throw new Error(`the console ended: ${output}`)
      if (url() === null) return null
      const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
      const response = await fetch(`${url()}/api/v1${path}`, {
        headers,
        ...(json && { method: 'POST', body: JSON.stringify(json) }),
      }).catch(() => null)
      return response?.ok ? ((await response.json()) as T) : null
    },
    async peakMb() {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '')
      return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024)
    },
    async end() {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}
