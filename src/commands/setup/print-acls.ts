import type { Config } from '../../config/config.ts'
import { partPermissions, securedParts, type SecuredPart } from '../../core/permissions.ts'
import { deploymentNames } from '../check-start.ts'
import { print, printJson } from '../output.ts'
import { aclLines } from './acl-lines.ts'
import { flagError } from '../flags.ts'

export interface AclFlags {
  printAcls: string
  part?: string[]
  fix?: boolean
  json?: boolean
}

const introduction = [
  '# What Postrider needs to be allowed, and nothing else. kafka-acls.sh itself has to log in as an administrator:',
  '# add --command-config FILE to each line.',
]

/** By the settings alone: no broker is asked. Throws `usage`. */
export function printAcls(config: Config, flags: AclFlags): void {
  const principal = flags.printAcls
  if (!/^[A-Za-z]+:[^\s].*$/.test(principal))
    throw flagError('--print-acls', principal, 'a principal of Kafka, such as User:postrider')
  const names = { ...deploymentNames(config), isFixing: flags.fix ?? false }
  const parts = partsOf(flags.part).map((part) => ({ part, permissions: partPermissions(part, names) }))
  if (flags.json) {
    for (const { part, permissions } of parts)
      for (const { operation, resource, name, isPrefix } of permissions)
        printJson({ part, principal, operation, resource, name, pattern: isPrefix ? 'prefixed' : 'literal' })
    return
  }
  for (const line of introduction) print(line)
  for (const { part, permissions } of parts) {
    print(`# ${headings[part]}`)
    for (const line of aclLines(permissions, principal, config.kafka.brokers)) print(line)
  }
}

const headings: Record<SecuredPart, string> = {
  setup: 'setup',
  collector: 'collector',
  forwarder: 'forwarder',
  console: 'console, and all other commands',
}

/** In their own order, whatever the flags' is. */
function partsOf(given: readonly string[] | undefined): SecuredPart[] {
  if (!given) return [...securedParts]
  const unknown = given.find((name) => !securedParts.includes(name as SecuredPart))
  if (unknown !== undefined) throw flagError('--part', unknown, securedParts.join(', '))
  return securedParts.filter((part) => given.includes(part))
}
