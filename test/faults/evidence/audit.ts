import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { AuditReport } from '../../../src/core/ledger/audit-report.ts'
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
    if (stderr.includes("unknown command 'audit'")) return ['postrider audit: there is no such command']
    findings.add('audit', `${stderr}${faultsIn(stdout)}`.slice(0, 4_000))
  }
  return []
}

/** What is wrong, without the partitions and destinations that add up. */
function faultsIn(stdout: string): string {
  try {
    const { faults, destinations } = JSON.parse(stdout) as AuditReport
    return JSON.stringify({ faults, unbalanced: destinations.filter(({ balance }) => balance !== 0) })
  } catch {
    return stdout
  }
}
