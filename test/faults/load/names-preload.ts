// Loaded before a forwarder: one host name leads to the address that stands in the file FAULTS_NAME_FILE, from the moment
// that it stands there. All others are looked up as ever.
import dns from 'node:dns'
import { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { movingHost } from './moving-host.ts'

const lookup = dns.lookup as unknown as (...args: unknown[]) => void

dns.lookup = ((...args: unknown[]) => {
  const [host, options] = args as [string, { all?: boolean } | undefined]
  if (host !== movingHost) return lookup(...args)
  const callback = args.at(-1) as (error: Error | null, ...answer: unknown[]) => void
  const address = readFileSync(process.env.FAULTS_NAME_FILE!, 'utf8').trim()
  setImmediate(() => (options?.all ? callback(null, [{ address, family: 4 }]) : callback(null, address, 4)))
}) as unknown as typeof dns.lookup
// What modules import by name.
syncBuiltinESMExports()
