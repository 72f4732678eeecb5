import type { TestContext } from 'node:test'
import { bareEnv } from './bare-env.ts'
import { startProgram, type CommandResult, type RunningCommand } from './command-rig.ts'
import type { Deployment } from './deployment.ts'

/** Starts a command as users do, on a deployment whose forwarders run in the test. */
export const startCommand = (t: TestContext, deployment: Deployment, ...args: string[]): RunningCommand =>
  startProgram(t, { ...bareEnv, ...deployment.env }, args)

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
