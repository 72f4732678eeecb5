// What a run of the program reads, writes and is stopped by: the process's own, or in a test what that gives it.
import { AsyncLocalStorage } from 'node:async_hooks'
import { resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import type { Environment } from '../config/read-environment.ts'
import { processIo } from './process-io.ts'

type InputStream = Readable & { isTTY?: boolean }
export type OutputStream = Writable & { isTTY?: boolean; columns?: number }

export interface ProgramIo {
  env: Environment
  /** The folder that it is started in. */
  cwd: string
  stdin: InputStream
  stdout: OutputStream
  stderr: OutputStream
  /** Undefined is 0. */
  exitCode: number | string | null | undefined
  /** Aborts when the program is to stop. The same signal at every call. */
  stopSignal(): AbortSignal
  /** Whether the process is the program's alone, so that it may end it and change how it works. */
  ownsProcess: boolean
}

// Not an argument: whatever a command calls may print. Runs of the program at the same time each have their own.
const runs = new AsyncLocalStorage<ProgramIo>()

/** What the run works with that this is called in; outside of one the process's. */
export const io = (): ProgramIo => runs.getStore() ?? processIo

/** Everything that `work` calls, now and later, has `given` as its `io()`. */
export const withIo = <T>(given: ProgramIo, work: () => T): T => runs.run(given, work)

export const stopSignal = (): AbortSignal => io().stopSignal()

/** A path as the user gave it, from the folder that the program is started in. */
export const pathOf = (given: string): string => resolve(io().cwd, given)
