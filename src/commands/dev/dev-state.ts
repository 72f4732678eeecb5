import { chmod, mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { checkoutOf, devEnvFile, readDevEnv } from '../../config/dev-env.ts'
import type { Environment } from '../../config/read-environment.ts'
import { usageError } from '../flags.ts'

const heading = `# Written by \`postrider dev\`; other commands in this checkout read it. SECRETS_KEY opens the secrets that lie in
# this Kafka: without it they are lost.
`

/** The folder where \`dev\` keeps everything, and its dev.env: what the last run left, and what this one leaves. */
export class DevState {
  /** `.postrider` of the checkout. */
  readonly folder: string
  readonly #file: string
  #values: Environment

  /** Throws PostriderError 'usage' outside of a checkout: other commands would not find what is left there. */
  constructor(cwd: string) {
    const checkout = checkoutOf(cwd)
    if (checkout === null)
      throw usageError(
        `${cwd} does not lie in a checkout of Postrider, where \`dev\` keeps its state; elsewhere, use \`setup\` and \`forwarder\` with a Kafka of your own`,
      )
    this.#file = devEnvFile(checkout)
    this.folder = dirname(this.#file)
    this.#values = readDevEnv(cwd)
  }

  get(name: string): string | null {
    return this.#values[name] || null
  }

  /** Sets these and keeps the others; null takes one away. Only this user may read the file. */
  async set(changes: Record<string, string | null>): Promise<void> {
    const values = { ...this.#values, ...changes }
    this.#values = Object.fromEntries(Object.entries(values).filter(([, value]) => value)) as Environment
    const lines = Object.entries(this.#values).map(([name, value]) => `${name}=${quoted(value!)}\n`)
    // All calls of this Kafka lie below, whatever the modes of the files that Kafka makes.
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
    await chmod(this.folder, 0o700)
    const partial = `${this.#file}.partial`
    await writeFile(partial, heading + lines.join(''), { mode: 0o600 })
    await rename(partial, this.#file)
  }
}

/** As Node's `parseEnv` reads it back: it knows three quotes, and no escape. */
function quoted(value: string): string {
  if (/^[\w.,:/-]*$/.test(value)) return value
  const quote = ["'", '"', '`'].find((mark) => !value.includes(mark)) ?? "'"
  return quote + value + quote
}
