import { Command } from 'commander'
import type { Admin } from 'kafkajs'
import { createKafka } from '../../adapters/kafka/patched-client.ts'
import { withAdmin } from '../../adapters/kafka/admin/with-admin.ts'
import { requirePermissions } from '../../adapters/kafka/secure/require-permissions.ts'
import { ensureTopics } from '../../adapters/kafka/admin/topics.ts'
import type { TopicProblem, TopicReport } from '../../adapters/kafka/admin/topics.ts'
import type { Logger } from '../../adapters/log.ts'
import { Registry } from '../../adapters/schema-registry/registry.ts'
import { registerSchemas } from '../../adapters/schema-registry/subjects.ts'
import type { SubjectReport } from '../../adapters/schema-registry/subjects.ts'
import type { Config } from '../../config/config.ts'
import { partPermissions, securedParts } from '../../core/permissions.ts'
import { deploymentNames } from '../check-start.ts'
import { loadContext, runAction } from '../context.ts'
import { print, printJson, printTable } from '../output.ts'
import { printAcls, type AclFlags } from './print-acls.ts'
import { usageError } from '../flags.ts'

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
        if (report.problems.some(({ severity }) => severity === 'error')) process.exitCode = 1
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
  for (const { severity, message } of problems) console.error(`postrider: ${severity}: ${message}`)
}
