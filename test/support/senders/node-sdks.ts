import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { writeKey } from '../calls/collectors.ts'

const script = fileURLToPath(new URL('../calls/sdk-client.ts', import.meta.url))

/** Calls that a program of `runSdk` sends; one more is for nobody. */
export const callsOfSdk = 9

/** Runs a program with a published SDK for Node to its end. `skewMs`: how far its clock is off. */
export async function runSdk(
  sdk: 'segment' | 'rudder',
  url: string,
  { skewMs = 0, key = writeKey, patienceMs = 10_000 }: RunSdkOptions = {},
): Promise<{ status: number | null; stderr: string }> {
  const child = spawn(process.execPath, [script, sdk, url, key, String(skewMs), String(patienceMs)])
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, stderr }
}

interface RunSdkOptions {
  skewMs?: number
  key?: string
  /** How long it may go on sending what was not accepted, where the SDK leaves that to its user. */
  patienceMs?: number
}
