import type { ProgramIo } from './io.ts'

const exitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** npm passes a Ctrl-C on to a process that has it from the terminal already: one key, two signals. */
const sameKeyMs = 500

/** How often to look whether npm is still there. */
const parentMs = 500

/**
 * npm runs a script in a shell, and hands a SIGTERM on to that shell only, which dies of it alone. So under npm
 * the end of our parent stands for the signal that did not get here.
 */
function onParentGone(stop: () => void): void {
  if (!process.env.npm_lifecycle_event) return
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    stop()
  }, parentMs)
  timer.unref()
}

let stopping: AbortSignal | undefined

function stopSignal(): AbortSignal {
  if (stopping) return stopping
  const controller = new AbortController()
  stopping = controller.signal
  let firstAt: number | undefined
  onParentGone(() => controller.abort())
  for (const [name, exitCode] of Object.entries(exitCodes)) {
    process.on(name, () => {
      if (firstAt === undefined) {
        firstAt = performance.now()
        controller.abort()
      } else if (performance.now() - firstAt > sameKeyMs) {
        process.exit(exitCode)
      }
    })
  }
  return stopping
}

/** Of the program as a process of its own. Streams are opened when they are first used. */
export const processIo: ProgramIo = {
  env: process.env,
  get cwd() {
    return process.cwd()
  },
  get stdin() {
    return process.stdin
  },
  get stdout() {
    return process.stdout
  },
  get stderr() {
    return process.stderr
  },
  get exitCode() {
    return process.exitCode
  },
  set exitCode(code) {
    process.exitCode = code
  },
  /**
   * Aborts on SIGINT, SIGTERM or a closed terminal, and when npm that runs us is ended; a second signal ends the
   * process at once. Until this is called, the first one does.
   */
  stopSignal,
  ownsProcess: true,
}
