import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { adminToken } from '../consoles.ts'
import type { Deployment } from '../deployment/deployment.ts'
import { bareEnv } from '../deployment/bare-env.ts'
import { temporaryFolder } from '../deployment/rig.ts'

const main = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
const preload = new URL('kill-preload.ts', import.meta.url).href

export interface ConsoleProcess {
  /** Resolves once it has ended, to the signal that ended it. */
  ended: Promise<NodeJS.Signals | null>
  /** What it wrote. */
  text(): string
}

/** `postrider console` in a process of its own. @param killAt as of kill-preload.ts; null: it lives until the test ends */
export async function startConsoleProcess(
  t: TestContext,
  deployment: Deployment,
  killAt: string | null,
): Promise<ConsoleProcess> {
  const folder = await temporaryFolder(t)
  const own = { CONSOLE_PORT: '0', METRICS_PORT: '0', ADMIN_TOKEN: adminToken }
  const child = spawn(
    process.execPath,
    [...(killAt === null ? [] : [`--import=${preload}`]), main, 'console'],
    {
      cwd: folder,
      env: {
        ...{ ...bareEnv, ...deployment.env, ...own, STORE_PATH: join(folder, 'store') },
        ...(killAt !== null && { KILL_AT: killAt }),
      },
    },
  )
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes: Buffer) => (text += bytes.toString()))
  const ended = once(child, 'exit').then(([, signal]) => signal as NodeJS.Signals | null)
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return { ended, text: () => text }
}
