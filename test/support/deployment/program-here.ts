// The program in the process of the test, which costs a tenth of a process of its own.
import { AsyncLocalStorage } from 'node:async_hooks'
import { Socket } from 'node:net'
import { Readable, Writable } from 'node:stream'
import type { ProgramIo } from '../../../src/cli/io.ts'
import { runProgram } from '../../../src/cli/program.ts'
import type { Environment } from '../../../src/config/read-environment.ts'
import { ownFolder } from './own-folder.ts'

export interface CommandResult {
  status: number | null
  stdout: string
  stderr: string
}

export interface GivenToProgram {
  /** All that it sees: nothing of this process's. */
  env: Environment
  /** On stdin. */
  input?: string | Uint8Array
  /** Else a folder of this process's own. */
  cwd?: string
}

/** A process would not end before its connections have. */
const closingMs = 2_000

/** The connections of the run that opens them. */
const sockets = new AsyncLocalStorage<Set<Socket>>()
const { connect } = Socket.prototype
Socket.prototype.connect = function (this: Socket, ...args: never[]) {
  sockets.getStore()?.add(this)
  return Reflect.apply(connect, this, args) as Socket
}

/**
 * Runs a command to its end, as a process of its own would: `startProgram` has one for what only a process shows, such
 * as a signal. Rejects if the command leaves a connection open, which would keep its process from ending.
 */
export async function runHere(
  t: { after(end: () => void): void },
  args: readonly string[],
  given: GivenToProgram,
): Promise<CommandResult> {
  const stopping = new AbortController()
  t.after(() => stopping.abort())
  const io = testIo(given, stopping.signal)
  const opened = new Set<Socket>()
  await sockets.run(opened, () => runProgram(args, io))
  await allClosed(opened, args)
  return { status: Number(io.exitCode ?? 0), stdout: io.stdout.text, stderr: io.stderr.text }
}

export function testIo({ env, input, cwd = ownFolder() }: GivenToProgram, stopping: AbortSignal) {
  return {
    env,
    cwd,
    stdin: Readable.from(input ? [Buffer.from(input)] : []),
    stdout: new Written(),
    stderr: new Written(),
    exitCode: undefined,
    stopSignal: () => stopping,
    ownsProcess: false,
  } satisfies ProgramIo
}

class Written extends Writable {
  readonly #chunks: Buffer[] = []

  get text(): string {
    return Buffer.concat(this.#chunks).toString('utf8')
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#chunks.push(chunk)
    done()
  }
}

async function allClosed(opened: ReadonlySet<Socket>, args: readonly string[]): Promise<void> {
  const deadline = performance.now() + closingMs
  let open = [...opened]
  while ((open = open.filter(keepsProcess)).length > 0 && performance.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 10))
  if (open.length === 0) return
  const places = open.map(({ remoteAddress, remotePort }) => `${remoteAddress}:${remotePort}`)
  throw new Error(`\`postrider ${args.join(' ')}\` left connections open: ${places.join(', ')}`)
}

/** Clients of HTTP keep connections for the next request, by which no process lives on. */
const keepsProcess = (socket: Socket): boolean =>
  !socket.destroyed &&
  ((socket as unknown as { _handle: { hasRef(): boolean } | null })._handle?.hasRef() ?? false)
