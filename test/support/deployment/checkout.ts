import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { bareEnv } from './bare-env.ts'
import { endWithThisProcess } from './command-rig.ts'

/** A command that runs in the checkout, and what it has written so far, to stdout and stderr alike. */
export interface Running {
  pid: number
  written(): string
  /** To stdout alone. */
  stdout(): string
  /** Resolves once it has written this; rejects when it ends before, or after `withinMs`. */
  writes(text: string, withinMs?: number): Promise<void>
  signal(name: NodeJS.Signals): void
  /** Its exit code, once it has ended; null when a signal ended it. */
  ended: Promise<number | null>
}

/** A folder that commands take for a checkout of Postrider: with a `.postrider` of its own. */
export interface Checkout {
  folder: string
  start(args: readonly string[], env?: Record<string, string>, input?: string): Running
}

const entry = join(import.meta.dirname, '..', '..', '..', 'src', 'main.ts')

/** Commands started in it are ended with the test, and then it is removed. */
export async function makeCheckout(t: TestContext): Promise<Checkout> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'postrider' }))
  const ending: (() => Promise<unknown>)[] = []
  t.after(async () => {
    await Promise.all(ending.map((end) => end()))
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 500 })
  })
  // Nothing of what this run has set, but what a terminal has.
  const kept = ['HOME', 'JAVA_HOME', 'POSTRIDER_CACHE', 'XDG_CACHE_HOME']
  const base: Record<string, string> = {
    ...bareEnv,
    ...Object.fromEntries(kept.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []))),
  }

  const start = (args: readonly string[], env: Record<string, string> = {}, input = ''): Running => {
    const child = spawn(process.execPath, [entry, ...args], { cwd: folder, env: { ...base, ...env } })
    endWithThisProcess(child)
    let [written, stdout] = ['', '']
    const listeners = new Set<() => void>()
    const take = (chunk: string) => {
      written += chunk
      for (const listener of listeners) listener()
    }
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk
      take(chunk)
    })
    child.stderr.setEncoding('utf8').on('data', take)
    child.stdin.on('error', () => {})
    child.stdin.end(input)
    const ended = once(child, 'close').then(([code]) => {
      for (const listener of listeners) listener()
      return code as number | null
    })
    ending.push(() => {
      child.kill('SIGKILL')
      return ended
    })
    return {
      pid: child.pid!,
      written: () => written,
      stdout: () => stdout,
      ended,
      signal: (name) => void child.kill(name),
      writes(text, withinMs = 60_000) {
        return new Promise((resolve, reject) => {
          const end = (error: Error | null) => {
            clearTimeout(timer)
            listeners.delete(look)
            if (error) reject(error)
            else resolve()
          }
          const look = () => {
            if (written.includes(text)) end(null)
            else if (child.exitCode !== null)
              end(new Error(`it ended without writing "${text}":\n${written}`))
          }
          const late = () => end(new Error(`no "${text}" within ${withinMs} ms:\n${written}`))
          const timer = setTimeout(late, withinMs)
          listeners.add(look)
          look()
        })
      },
    }
  }
  return { folder, start }
}
