import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'

/** The other checkout that BENCH_AGAINST names; null where it names none. */
export const otherCheckout = (): string | null => process.env.BENCH_AGAINST ?? null

export const forwardingOf = (folder: string): string => resolve(folder, 'bench/children/forwarding.ts')

/** It reads by schemas of its own. */
export async function setUpFrom(folder: string, env: Record<string, string>): Promise<void> {
  const main = resolve(folder, 'src/main.ts')
  await promisify(execFile)(process.execPath, [main, 'setup'], {
    cwd: folder,
    env: { ...process.env, ...env },
  })
}
