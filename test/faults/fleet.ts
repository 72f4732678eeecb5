import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { messageOf } from '../../src/errors.ts'
import { startChild, type ChildExit, type ChildProcess } from '../../src/local/child-process.ts'
import { freePort } from '../../src/local/ports.ts'
import { parseExposition, type Samples } from '../support/exposition.ts'
import { until } from '../support/until.ts'
import { bareEnv } from '../support/deployment/bare-env.ts'

const entry = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
const preloads = ['load/sent-preload.ts', 'load/names-preload.ts', 'kinds/clock-preload.ts'].map(
  (file) => `--import=${pathToFileURL(join(import.meta.dirname, file)).href}`,
)

export type Command = 'forwarder' | 'collector' | 'console'

const portTaken = 'a port that is taken'

/** The place of one process of Postrider: it is killed, stopped and started again here. */
export class Seat {
  readonly name: string
  readonly #command: Command
  readonly #folder: string
  readonly #env: Record<string, string>
  readonly #patience: number
  readonly #onUnexpectedExit: (text: string) => void
  #child: ChildProcess | null = null
  #starts = 0
  #port = 0
  /** Its end is our doing. */
  #ending = false
  frozen = false
  clockOffsetMs = 0
  /** Its last answer to `ask`. */
  said = 'nothing'
  tiers: string
  /** One fault at a time. */
  busy = false

  constructor(given: {
    name: string
    command: Command
    folder: string
    env: Record<string, string>
    tiers: string
    patience: number
    onUnexpectedExit: (text: string) => void
  }) {
    this.name = given.name
    this.#command = given.command
    this.#folder = given.folder
    this.#env = given.env
    this.tiers = given.tiers
    this.#patience = given.patience
    this.#onUnexpectedExit = given.onUnexpectedExit
  }

  get pid(): number | null {
    return this.#child?.isRunning() ? this.#child.pid : null
  }

  get #clockFile(): string {
    return join(this.#folder, `${this.name}.clock`)
  }

  async start(): Promise<void> {
    await mkdir(this.#folder, { recursive: true })
    await writeFile(this.#clockFile, String(this.clockOffsetMs))
    this.#port = await freePort()
    this.#ending = false
    const logFile = this.#logFile(++this.#starts)
    const child = await startChild({
      command: process.execPath,
      args: [entry, this.#command],
      cwd: this.#folder,
      env: {
        ...bareEnv,
        ...this.#env,
        RETRY_TIERS: this.tiers,
        METRICS_PORT: String(this.#port),
        LOG_LEVEL: 'error',
        NODE_OPTIONS: ['--trace-warnings', ...preloads].join(' '),
        FAULTS_CLOCK_FILE: this.#clockFile,
      },
      logFile,
    })
    this.#child = child
    void child.exited.then(async (exit) => {
      if (this.#ending) return
      // A free port can be taken by another process before the process takes it.
      if ((await readFile(logFile, 'utf8').catch(() => '')).includes(portTaken)) return this.start()
      this.#onUnexpectedExit(`${this.name} ended by itself (${describe(exit)}), see ${logFile}`)
    })
  }

  async kill(): Promise<void> {
    this.#ending = true
    this.frozen = false
    await this.#child?.kill()
  }

  /** SIGTERM; resolves with how it ended and how long that took, in ms. It is killed after `deadlineMs`. */
  async terminate(deadlineMs: number): Promise<{ text: string; inGoodOrder: boolean; tookMs: number }> {
    this.#ending = true
    const began = performance.now()
    await this.#child!.stop(deadlineMs)
    const exit = await this.#child!.exited
    const tookMs = performance.now() - began
    const lines = (await readFile(this.#logFile(this.#starts), 'utf8')).split('\n')
    const inGoodOrder = exit.code === 0 || (exit.code === 1 && lines.some((line) => this.#isOutOfTime(line)))
    return { text: describe(exit), inGoodOrder, tookMs }
  }

  #logFile(start: number): string {
    return join(this.#folder, `${this.name}-${start}.log`)
  }

  /** It gives up its stop after 15 s and says so; on a machine that has much else to do that is no time. */
  #isOutOfTime(line: string): boolean {
    return this.#patience > 1 && line.includes('not stopped within')
  }

  freeze(): void {
    this.frozen = true
    if (this.pid !== null) process.kill(this.pid, 'SIGSTOP')
  }

  thaw(): void {
    this.frozen = false
    if (this.pid !== null) process.kill(this.pid, 'SIGCONT')
  }

  async setClock(offsetMs: number): Promise<void> {
    this.clockOffsetMs = offsetMs
    await writeFile(this.#clockFile, String(offsetMs))
    if (this.pid !== null) process.kill(this.pid, 'SIGUSR2')
  }

  /** The status of /healthz or /readyz; null when there is no answer. */
  async ask(path: 'healthz' | 'readyz'): Promise<number | null> {
    try {
      const response = await fetch(`http://127.0.0.1:${this.#port}/${path}`, {
        signal: AbortSignal.timeout(5_000),
      })
      this.said = await response.text()
      return response.status
    } catch (error) {
      this.said = `nothing (${messageOf(error)})`
      return null
    }
  }

  /** What it counts, by series; null when there is no answer. */
  async samples(): Promise<Samples | null> {
    try {
      const response = await fetch(`http://127.0.0.1:${this.#port}/metrics`, {
        signal: AbortSignal.timeout(5_000),
      })
      return parseExposition(await response.text()).samples
    } catch {
      return null
    }
  }

  async ready(withinMs: number): Promise<void> {
    await until(async () => (await this.ask('readyz')) === 200, withinMs, `readiness of ${this.name}`)
  }

  /** What the process has of the machine now; null when there is none, or no /proc. */
  async usage(): Promise<{ rssMb: number; files: number } | null> {
    const { pid } = this
    if (pid === null) return null
    try {
      const [statm, files] = await Promise.all([
        readFile(`/proc/${pid}/statm`, 'utf8'),
        readdir(`/proc/${pid}/fd`),
      ])
      return { rssMb: (Number(statm.split(' ')[1]) * 4_096) / 1_048_576, files: files.length }
    } catch {
      return null
    }
  }

  /** Lines beside its log, and lines of the levels error and fatal, of all its lives: but for failed attempts. */
  async complaints(): Promise<string[]> {
    const found: string[] = []
    for (let start = 1; start <= this.#starts; start++) {
      const text = await readFile(this.#logFile(start), 'utf8').catch(() => '')
      for (const line of text.split('\n'))
        if (line !== '' && !line.includes(portTaken) && !isExpected(line) && !this.#isOutOfTime(line))
          found.push(`${this.name}-${start}: ${line}`)
    }
    return found
  }
}

const describe = ({ code, signal }: ChildExit): string => signal ?? `exit code ${code}`

/** One line for each attempt that failed for good, or in which nothing could be sent, is what is promised; and of a login that fails. */
function isExpected(line: string): boolean {
  try {
    const { outcome, msg } = JSON.parse(line) as { outcome?: string; msg?: string }
    // Of each time that its token endpoint is away.
    if (msg?.startsWith('the login fails, for no token is to be had')) return true
    return outcome === 'tls' || outcome === 'blocked' || outcome === 'gone'
  } catch {
    return false
  }
}
