import { Command } from 'commander'
import { durationText } from '../../core/duration.ts'
import type { Infrastructure, TopicState } from '../../console/infrastructure/infrastructure.ts'
import { loadContext, runAction } from '../context.ts'
import type { JsonFlag } from '../flags.ts'
import { print, printable, printJson, printTable } from '../output.ts'
import { openInfrastructure } from './open-infrastructure.ts'

export function infrastructureCommand(): Command {
  return new Command('infrastructure')
    .description(
      'The state of Kafka, the schema registry and the topics: brokers, partitions, copies, retention, schemas, and ' +
        'what is wrong with them. Exits with 1 if anything is missing or away.',
    )
    .option('--json', 'as JSON')
    .action(runAction(show))
}

async function show({ json }: JsonFlag, command: Command): Promise<void> {
  const state = await openInfrastructure(loadContext(command)).show()
  if (json) printJson(state)
  else printState(state)
  if (!isSound(state)) process.exitCode = 1
}

function isSound({ kafka, registry, topics }: Infrastructure): boolean {
  const isTopicSound = ({ withoutLeader, problems }: TopicState) =>
    withoutLeader === 0 && !problems.some(({ severity }) => severity === 'error')
  return (
    kafka.problem === null &&
    registry.problem === null &&
    registry.subjects.every(({ schemaId }) => schemaId !== null) &&
    topics.every(isTopicSound)
  )
}

function printState({ kafka, registry, topics }: Infrastructure): void {
  print(`Kafka     ${kafka.problem === null ? `cluster ${kafka.clusterId}` : printable(kafka.problem)}`)
  for (const { id, host, port, isController } of kafka.brokers)
    print(`          broker ${id} at ${host}:${port}${isController ? ', controller' : ''}`)
  const missing = registry.subjects.filter(({ schemaId }) => schemaId === null)
  print(`registry  ${registry.problem === null ? registry.url : printable(registry.problem)}`)
  for (const { subject } of missing)
    print(`          the schema of ${subject} is not registered: run \`postrider setup\``)
  if (topics.length > 0) print('')
  if (topics.length > 0)
    printTable(
      ['TOPIC', 'PARTITIONS', 'COPIES', 'OUT OF SYNC', 'RETENTION'],
      topics.map((topic) => [
        topic.name,
        topic.partitions,
        topic.copies,
        topic.underReplicated,
        retentionOf(topic),
      ]),
    )
  for (const { severity, message } of topics.flatMap(({ problems }) => problems))
    console.error(`postrider: ${severity}: ${message}`)
}

function retentionOf({ exists, cleanupPolicy, retentionMs }: TopicState): string {
  if (!exists) return 'missing'
  if (cleanupPolicy === 'compact') return 'the newest of each key'
  if (retentionMs === null) return 'for ever'
  return durationText(retentionMs)
}
