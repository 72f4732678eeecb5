import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdirSync, openSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What a child of the benchmark reports by IPC. Lists come beside numbers where their kind says so. */
export type ChildReport = { kind: string } & Record<string, number>

const hasTaskset = process.platform === 'linux' && spawnSync('taskset', ['--version']).status === 0

/** Whether processes are bound to cores; without it figures of one core are not to be had. */
export const bindsCores = hasTaskset

/** What the measured processes print: their logs as users have them, which cost what they cost users. */
export const outputFile = join(import.meta.dirname, 'results', 'output.log')
mkdirSync(dirname(outputFile), { recursive: true })
const output = openSync(outputFile, 'w')

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

interface ChildOptions {
  core: number
  args?: string[]
  env?: Record<string, string>
  /** For Node. */
  flags?: string[]
  /** By default a child ends when it is disconnected. */
  endBy?: 'SIGTERM'
}

/** A process of the benchmark on one core, spoken to by IPC. */
export class Child {
  readonly #process: ChildProcess
  /** For programs of others, which know nothing of IPC. */
  readonly #endBy: 'SIGTERM' | null
  #exited = false

  /** @param file a script in `children`, or the path of another one or of a program */
  constructor(file: string, options: ChildOptions) {
    this.#endBy = options.endBy ?? null
    const node = (script: string) => [
      process.execPath,
      ...benchFlags,
      ...(options.flags ?? []),
      isAbsolute(script) ? script : fileURLToPath(new URL(`./children/${script}`, import.meta.url)),
    ]
    const command = [...(file.endsWith('.ts') ? node(file) : [file]), ...(options.args ?? [])]
    const [program, ...rest] = hasTaskset ? ['taskset', '-c', String(options.core), ...command] : command
    this.#process = spawn(program!, rest, {
      stdio: ['ignore', output, 'inherit', 'ipc'],
      env: { ...process.env, ...options.env },
    })
    this.#process.on('exit', () => {
      this.#exited = true
      running.delete(this.#process)
    })
    running.add(this.#process)
  }

  get pid(): number {
    return this.#process.pid!
  }

  /** The next report of this kind from the child. */
  reported(kind: string): Promise<ChildReport> {
    const reported = new Promise<ChildReport>((resolve, reject) => {
      const onMessage = (message: ChildReport) => {
        if (message.kind !== kind) return
        this.#process.off('message', onMessage)
        this.#process.off('exit', onExit)
        resolve(message)
      }
      const onExit = () => reject(new Error(`a process of the benchmark ended before it reported "${kind}"`))
      this.#process.on('message', onMessage)
      this.#process.on('exit', onExit)
    })
    // The caller may still be busy elsewhere when the child ends: the promise rejects once it is awaited.
    reported.catch(() => {})
    return reported
  }

  /** What is awaited, unless this process ends before. */
  async unlessEnded<T>(awaited: Promise<T>): Promise<T> {
    const { promise: ended, reject } = Promise.withResolvers<never>()
    const onExit = () => reject(new Error('a process of the benchmark ended before its work was done'))
    if (this.#exited) onExit()
    this.#process.on('exit', onExit)
    try {
      return await Promise.race([awaited, ended])
    } finally {
      this.#process.off('exit', onExit)
    }
  }

  ask(message: object, kind: string): Promise<ChildReport> {
    const reported = this.reported(kind)
    this.#process.send(message)
    return reported
  }

  send(message: object): void {
    this.#process.send(message)
  }

  async end(): Promise<void> {
    if (this.#exited) return
    const ended = new Promise((resolve) => this.#process.once('exit', resolve))
    this.#process.disconnect()
    if (this.#endBy) this.#process.kill(this.#endBy)
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), 20_000)
    await ended
    clearTimeout(timer)
  }
}

/** For profiling: BENCH_NODE_FLAGS="--cpu-prof --cpu-prof-dir=/tmp/prof". */
const benchFlags = (process.env.BENCH_NODE_FLAGS ?? '').split(' ').filter(Boolean)
