import { spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { CommandResult, RunningCommand } from './command-rig.ts'
import type { Deployment } from './deployment.ts'
import { bareEnv } from './bare-env.ts'

const main = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))

/** Starts a command as users do, on a deployment whose forwarders run in the test. */
export function startCommand(t: TestContext, deployment: Deployment, ...args: string[]): RunningCommand {
  const env = { ...bareEnv, ...deployment.env }
  const child = spawn(process.execPath, [main, ...args], { cwd: tmpdir(), env })
  t.after(() => child.kill('SIGKILL'))
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  // A command that fails early does not read on.
  child.stdin.on('error', () => {})
  const ended = new Promise<CommandResult>((resolve) =>
    child.on('close', (status) => resolve({ status, stdout, stderr })),
  )
  return { process: child, ended }
}

/** Runs it to its end, with this on stdin. */
export function runCommand(
  t: TestContext,
  deployment: Deployment,
  input: string | Uint8Array,
  ...args: string[]
): Promise<CommandResult> {
  const { process: child, ended } = startCommand(t, deployment, ...args)
  child.stdin.end(input)
  return ended
}
