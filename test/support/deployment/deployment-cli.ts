import type { TestContext } from 'node:test'
import { bareEnv } from './bare-env.ts'
import { startProgram, type RunningCommand } from './command-rig.ts'
import type { Deployment } from './deployment.ts'
import { runHere, type CommandResult } from './program-here.ts'

/** Starts a command as users do, on a deployment whose forwarders run in the test. */
export const startCommand = (t: TestContext, deployment: Deployment, ...args: string[]): RunningCommand =>
  startProgram(t, { ...bareEnv, ...deployment.env }, args)

/** Runs one to its end in this process, with this on stdin. */
export const runCommand = (
  t: TestContext,
  { env }: Pick<Deployment, 'env'>,
  input: string | Uint8Array,
  ...args: string[]
): Promise<CommandResult> => runHere(t, args, { env, input })
