import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

let made: string | null = null

/** Where this process's commands run, and keep their views unless told where: it ends with the process. */
export function ownFolder(): string {
  if (made !== null) return made
  const folder = mkdtempSync(join(tmpdir(), `postrider-test-${process.pid}-`))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  return (made = folder)
}
