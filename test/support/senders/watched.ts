import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { TestContext } from 'node:test'
import { toolFolders } from '../ops/tools.ts'
import { within } from '../until.ts'

export interface Watched {
  /** `<address>:<port>` of everything that it connected or sent to until now, in order, more than once too. */
  asked(): Promise<string[]>
  /** Ends what it reads. */
  endInput(): void
  /** How it ended, and what it wrote. */
  end(withinMs: number): Promise<{ status: number | null; output: string }>
}

/**
 * Runs a program under strace, which sees what it connects to, whatever library it uses. `isCutOff`: its connections
 * fail, so that nothing leaves this machine, but are seen.
 */
export async function watch(
  t: TestContext,
  { strace, program, env, isCutOff = false }: WatchOptions,
): Promise<Watched> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-sender-'))
  const log = join(folder, 'log')
  const calls = ['-f', '--seccomp-bpf', '-e', 'trace=connect,sendto,sendmsg,sendmmsg', '-s', '0']
  const cut = isCutOff ? ['-e', 'inject=connect:error=ECONNREFUSED'] : []
  const child = spawn(strace, [...calls, ...cut, '-o', log, program], {
    env: { PATH: toolFolders.join(delimiter), ...env },
    // A group of its own: strace that is killed leaves what it watches.
    detached: true,
  })
  const ended = once(child, 'close') as Promise<[number | null]>
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stdin.on('error', () => {})
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGKILL')
    await ended
    await rm(folder, { recursive: true, force: true })
  })
  return {
    async asked() {
      const text = await readFile(log, 'utf8').catch(() => '')
      return [...text.matchAll(/htons\((\d+)\).*?"([^"]*)"/g)].map(
        ([, port, address]) => `${address!.replace(/^::ffff:/, '')}:${port}`,
      )
    },
    endInput: () => void child.stdin.end(),
    async end(withinMs) {
      const [status] = await within(withinMs, ended, `the end of ${program}, which wrote: ${output}`)
      return { status, output }
    },
  }
}

export interface WatchOptions {
  strace: string
  program: string
  env: Record<string, string>
  isCutOff?: boolean
}
