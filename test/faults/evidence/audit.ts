import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Findings } from './findings.ts'
import type { Rig } from '../rig.ts'

const main = join(import.meta.dirname, '..', '..', '..', 'src', 'main.ts')

/** Postrider's own proof over the same topics. Returns what could not be checked. */
export async function audit(rig: Rig, findings: Findings): Promise<string[]> {
  try {
    await promisify(execFile)(process.execPath, [main, 'audit', '--json'], {
      env: rig.commandEnv(),
      maxBuffer: 64 * 1024 * 1024,
    })
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    const said = `${stderr}${stdout}`.slice(0, 4_000)
    if (said.includes("unknown command 'audit'")) return ['postrider audit: there is no such command']
    findings.add('audit', said)
  }
  return []
}
