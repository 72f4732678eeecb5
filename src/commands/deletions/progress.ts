import { SingleBar } from 'cli-progress'
import type { DeletionOptions } from '../../console/deletions/deletions.ts'

const phases = { erasing: 'erasing', notifying: 'writing delete calls' }
/** Between two lines where there is no terminal to draw a bar on. */
const lineEveryMs = 2_000

/** A bar on stderr, or where that is no terminal a line every few seconds. */
export function deletionProgress(): Required<Pick<DeletionOptions, 'onProgress'>> & { stop(): void } {
  if (!process.stderr.isTTY) return linesOfProgress()
  let shown: string | null = null
  let bar: SingleBar | null = null
  return {
    onProgress(phase, done, total) {
      if (shown !== phase) {
        bar?.stop()
        shown = phase
        const format = `${phases[phase]}: {bar} {percentage}%  {value} of {total}, {eta_formatted} left`
        bar = new SingleBar({ stream: process.stderr, clearOnComplete: true, etaBuffer: 100, format })
        bar.start(total, 0)
      }
      bar!.update(done)
    },
    stop: () => bar?.stop(),
  }
}

function linesOfProgress(): ReturnType<typeof deletionProgress> {
  let saidAt = performance.now()
  return {
    onProgress(phase, done, total) {
      if (performance.now() - saidAt < lineEveryMs) return
      saidAt = performance.now()
      console.error(`${phases[phase]}: ${done} of ${total}`)
    },
    stop: () => {},
  }
}
