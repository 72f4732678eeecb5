import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isPortFree } from '../../../src/local/ports.ts'
import type { Checkout } from './checkout.ts'

/** The end of what `dev` writes once everything runs. */
export const devReady = 'Ctrl-C ends everything.\n\n'

/** What `dev` leaves for other commands in the checkout. */
export const devEnv = (checkout: Checkout): Promise<string> =>
  readFile(join(checkout.folder, '.postrider', 'dev.env'), 'utf8')

/**
 * A free port, of those that nobody gets by asking for any free one: it is used seconds later, and again by a second run. Systems
 * give out higher ones, and so does `freePort` to the brokers of other tests.
 */
export async function ownPort(except: readonly number[] = []): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 20_000)
    if (!except.includes(port) && (await isPortFree(port))) return port
  }
}

/** Ports of a test's own for everything that `dev` listens on, with that number of brokers. */
export async function ownPorts(brokers: 1 | 3 = 1) {
  const names = ['DEV_REGISTRY_PORT', 'DEV_RECEIVER_PORT', 'COLLECTOR_PORT', 'CONSOLE_PORT', 'METRICS_PORT']
  const kafka = await adjacentPorts(brokers)
  const ports = [...kafka]
  for (const _ of names) ports.push(await ownPort(ports))
  const env = Object.fromEntries(names.map((name, at) => [name, String(ports[brokers + at])]))
  const allFree = async () => !(await Promise.all(ports.map(isPortFree))).includes(false)
  return {
    env: { DEV_KAFKA_PORT: String(kafka[0]), ...env } as Record<string, string>,
    ports,
    kafka,
    allFree,
  }
}

async function adjacentPorts(count: number): Promise<number[]> {
  for (;;) {
    const first = await ownPort()
    const ports = Array.from({ length: count }, (_, at) => first + at)
    if (!(await Promise.all(ports.map(isPortFree))).includes(false)) return ports
  }
}
