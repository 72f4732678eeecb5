// Loaded before each test file by scripts/run-test-files.ts: a file whose tests have ended and that keeps its process
// alive has left something open, and would hold up the whole run.
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
