import { Command } from 'commander'
import { createKafka } from '../adapters/kafka/patched-client.ts'
import { ensureTopics } from '../adapters/kafka/topics.ts'
import type { TopicProblem, TopicReport } from '../adapters/kafka/topics.ts'
import type { Logger } from '../adapters/log.ts'
import { Registry } from '../adapters/schema-registry/registry.ts'
import { registerSchemas } from '../adapters/schema-registry/subjects.ts'
import type { SubjectReport } from '../adapters/schema-registry/subjects.ts'
import type { Config } from '../config.ts'
import { loadContext, runAction } from './context.ts'
import { print, printJson, printTable } from './output.ts'

export interface SetupReport {
  topics: TopicReport[]
  subjects: SubjectReport[]
  /** What is still wrong; errors keep the parts from starting. */
  problems: TopicProblem[]
}

/**
 * Creates the topics and registers the schemas that are missing. With `fix`, settings of existing topics are
 * mended too. Idempotent. Throws PostriderError 'setup' or 'registry_unavailable', or kafkajs's own errors.
 */
export async function runSetup(
  config: Config,
  log: Logger,
  options: { fix?: boolean } = {},
): Promise<SetupReport> {
  // What kafkajs warns of on the way is in the error that ends the command.
  const kafkaLog = log.isLevelEnabled('info') ? log : log.child({}, { level: 'error' })
  const admin = createKafka(config, kafkaLog).admin()
  try {
    await admin.connect()
    const topics = await ensureTopics(admin, config, options)
    const subjects = await registerSchemas(new Registry(config.registry), config)
    return { topics, subjects, problems: topics.flatMap(({ problems }) => problems) }
  } finally {
    await admin.disconnect()
  }
}

export function setupCommand(): Command {
  return new Command('setup')
    .description(
      'Creates the topics and registers the schemas that are missing, and says what is wrong with those that ' +
        'are there. Can be run again at any time; run it after a change of RETRY_TIERS and after an upgrade.',
    )
    .option('--fix', 'also set right the settings of topics that exist (never their number of partitions)')
    .option('--json', 'print JSON lines')
    .action(
      runAction(async (flags: { fix?: boolean; json?: boolean }, command: Command) => {
        const { config, log } = loadContext(command)
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
