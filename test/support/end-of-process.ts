// Loaded before each test file by scripts/run-test-files.ts: a file whose tests have ended and that keeps its process
// alive has left something open, and would hold up the whole run. It says what the file took of the processors, too.
import { appendFileSync, readFileSync } from 'node:fs'
import { after } from 'node:test'

/** Connections that close in good order and timers that run out get this long. */
const graceMs = 120_000

after(() => {
  setTimeout(() => {
    console.error(
      `still open ${graceMs / 1000} s after the last test: ${process.getActiveResourcesInfo().join(', ')}`,
    )
    process.exit(1)
  }, graceMs).unref()
})

const { TEST_CPU_FILE } = process.env
const ticksASecond = 100

if (TEST_CPU_FILE !== undefined)
  process.on('exit', () => appendFileSync(TEST_CPU_FILE, `${process.argv[1]}\t${cpuSeconds()}\n`))

/** Of this process and, on Linux, of its children that have ended: proc(5), utime, stime, cutime and cstime. */
function cpuSeconds(): number {
  try {
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]!.split(' ')
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / ticksASecond
  } catch {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1_000_000
  }
}
