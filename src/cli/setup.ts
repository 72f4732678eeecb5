import { Command } from 'commander'
import type { Admin } from 'kafkajs'
import { ensureTopics, type TopicProblem, type TopicReport } from '../adapters/kafka/admin/topics.ts'
import { withAdmin } from '../adapters/kafka/admin/with-admin.ts'
import { createKafka } from '../adapters/kafka/patched-client.ts'
import { requirePermissions } from '../adapters/kafka/secure/require-permissions.ts'
import type { Logger } from '../adapters/log.ts'
import { Registry } from '../adapters/schema-registry/registry.ts'
import { registerSchemas, type SubjectReport } from '../adapters/schema-registry/subjects.ts'
import type { Config } from '../config/config.ts'
import {
  partPermissions,
  securedParts,
  type KafkaOperation,
  type Permission,
  type SecuredPart,
} from '../core/permissions.ts'
import { deploymentNames } from './check-start.ts'
import { loadContext, runAction } from './context.ts'
import { usageError, flagError } from './flags.ts'
import { io } from './io.ts'
import { print, printAside, printJson, printTable } from './terminal.ts'

type Flags = Partial<AclFlags>

export interface SetupReport {
  topics: TopicReport[]
  subjects: SubjectReport[]
  /** What is still wrong; errors keep the parts from starting. */
  problems: TopicProblem[]
}

/**
 * Creates the topics and registers the schemas that are missing. With `fix`, settings of existing topics are
 * fixed too. Idempotent. Throws PostriderError 'setup' or 'registry_unavailable', or kafkajs's own errors.
 */
export async function runSetup(
  config: Config,
  log: Logger,
  options: { fix?: boolean } = {},
): Promise<SetupReport> {
  // What kafkajs warns of on the way is in the error that ends the command.
  const kafkaLog = log.isLevelEnabled('info') ? log : log.child({}, { level: 'error' })
  const kafka = createKafka(config, kafkaLog)
  const needs = partPermissions('setup', { ...deploymentNames(config), isFixing: options.fix ?? false })
  const ensure = async (admin: Admin): Promise<TopicReport[]> => {
    await requirePermissions(kafka, needs, log)
    return ensureTopics(kafka, admin, config, options)
  }
  const topics = await withAdmin(kafka, ensure, { needs })
  const subjects = await registerSchemas(new Registry(config.registry), config)
  return { topics, subjects, problems: topics.flatMap(({ problems }) => problems) }
}

export function setupCommand(): Command {
  return new Command('setup')
    .description(
      'Creates the topics and registers the schemas that are missing, and says what is wrong with those that ' +
        'are there. Can be run again at any time; run it after a change of RETRY_TIERS and after an upgrade.',
    )
    .option('--fix', 'also set right the settings of topics that exist (never their number of partitions)')
    .option('--json', 'print JSON lines')
    .option(
      '--print-acls <principal>',
      'only print, for User:NAME, the commands that give it the least permissions that work; no broker is asked',
    )
    .option('--part <name...>', `with --print-acls, of these parts alone: ${securedParts.join(', ')}`)
    .action(
      runAction(async (flags: Flags, command: Command) => {
        const { config, log } = loadContext(command)
        if (flags.printAcls !== undefined) return printAcls(config, { ...flags, printAcls: flags.printAcls })
        if (flags.part) throw usageError('--part goes with --print-acls')
        const report = await runSetup(config, log, { fix: flags.fix ?? false })
        if (flags.json) printAsJson(report)
        else printForPeople(report)
        if (report.problems.some(({ severity }) => severity === 'error')) io().exitCode = 1
      }),
    )
}

function printAsJson({ topics, subjects }: SetupReport): void {
  for (const topic of topics) printJson({ kind: 'topic', ...topic })
  for (const subject of subjects) printJson({ kind: 'subject', ...subject })
}

function printForPeople({ topics, subjects, problems }: SetupReport): void {
  printTable(
    ['TOPIC', 'PARTITIONS', ''],
    topics.map(({ topic, partitions, result }) => [topic, partitions, result]),
  )
  print('')
  printTable(
    ['SUBJECT', 'SCHEMA ID', ''],
    subjects.map(({ subject, id, result }) => [subject, id, result]),
  )
  for (const { severity, message } of problems) printAside(`postrider: ${severity}: ${message}`)
}

/** As `kafka-acls.sh` spells them. */
const spelled: Record<KafkaOperation, string> = {
  READ: 'Read',
  WRITE: 'Write',
  CREATE: 'Create',
  DESCRIBE: 'Describe',
  DESCRIBE_CONFIGS: 'DescribeConfigs',
  ALTER_CONFIGS: 'AlterConfigs',
}

/** Commands for a shell that grant all of it: one for each kind of resource and set of operations. */
export function aclLines(
  permissions: readonly Permission[],
  principal: string,
  brokers: readonly string[],
): string[] {
  const byResource = Map.groupBy(
    permissions,
    ({ resource, name, isPrefix }) => `${resource} ${isPrefix} ${name}`,
  )
  const byOperations = Map.groupBy(byResource.values(), (its) => {
    const { resource, isPrefix } = its[0]!
    return `${resource} ${isPrefix} ${its.map(({ operation }) => operation).join()}`
  })
  return [...byOperations.values()].map((resources) => {
    const operations = resources[0]!.map(({ operation }) => operation)
    const { resource, isPrefix } = resources[0]![0]!
    return [
      `kafka-acls.sh --bootstrap-server ${quoted(brokers.join())} --add --allow-principal ${quoted(principal)}`,
      ...operations.map((operation) => `--operation ${spelled[operation]}`),
      ...resources.map(([first]) => `--${resource} ${quoted(first!.name)}`),
      ...(isPrefix ? ['--resource-pattern-type prefixed'] : []),
    ].join(' ')
  })
}

/** For a POSIX shell. */
const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

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
