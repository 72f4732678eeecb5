import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

/** How a child process ended: with an exit code, or by a signal. */
export interface ChildExit {
  code: number | null
  signal: NodeJS.Signals | null
}

export interface ChildProcess {
  pid: number
  /** Resolves when it has ended for any reason; never rejects. */
  exited: Promise<ChildExit>
  /** True until `exited` resolves. */
  isRunning(): boolean
  /** SIGTERM, and SIGKILL after `deadlineMs` (default 10 s). Resolves once it is gone; idempotent. */
  stop(deadlineMs?: number): Promise<void>
  /** SIGKILL: what a crash looks like. Resolves once it is gone. */
  kill(): Promise<void>
}

/**
 * Leaves a watcher beside the command, in its process group, and becomes the command (so that our child's pid,
 * signals and exit code are the command's own). The watcher reads our end of the pipe: it closes when this
 * process is gone, however it went (kill -9 included), and then the command is ended too, within 5 s.
 */
const dieWithParent = `umask 077
exec 3<&0
(
  cat <&3 >/dev/null
  kill -TERM $$
  tries=0
  while kill -0 $$ && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
  kill -KILL -$$
) 2>/dev/null &
exec 3<&-
exec "$@" </dev/null`

/**
 * Starts a command that cannot outlive this process. It runs in a session of its own, so a Ctrl-C in the
 * terminal does not reach it before the parts that still need it have drained. Output goes to `logFile`, which
 * starts over. What it writes is for this user alone. The environment is exactly `env`: nothing of ours (secrets, other tools' settings) leaks in.
 */
export async function startChild(options: {
  command: string
  args: readonly string[]
  cwd: string
  env: Record<string, string>
  logFile: string
}): Promise<ChildProcess> {
  const log = openSync(options.logFile, 'w', 0o600)
  const child = spawn('sh', ['-c', dieWithParent, 'sh', options.command, ...options.args], {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: ['pipe', log, log],
  })
  closeSync(log)
  // A pipe whose reader is gone says EPIPE when it is closed: of no interest.
  child.stdin?.on('error', () => {})
  let running = true
  const exited = new Promise<ChildExit>((resolve) => {
    child.once('exit', (code, signal) => {
      running = false
      child.stdin?.destroy()
      killGroup(child.pid)
      resolve({ code, signal })
    })
  })
  await once(child, 'spawn')
  const pid = child.pid as number
  const kill = async () => {
    killGroup(running ? pid : undefined)
    await exited
  }
  const stop = async (deadlineMs = 10_000) => {
    if (running) child.kill('SIGTERM')
    const timer = setTimeout(() => void kill(), deadlineMs)
    await exited
    clearTimeout(timer)
  }
  return { pid, exited, isRunning: () => running, stop, kill }
}

/** Ends what is left of a child's process group: the command, or only its watcher. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The group is gone already.
  }
}

/** The line of a child's log that says best why it ended: its last error, else its last line. */
export async function lastWords(logFile: string): Promise<string> {
  const lines = (await readFile(logFile, 'utf8').catch(() => ''))
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  const causes = lines.filter((line) => /^Caused by:|Exception:|\bERROR\b|^Error/.test(line))
  return (causes.at(-1) ?? lines.at(-1) ?? 'it wrote nothing').slice(0, 300)
}
