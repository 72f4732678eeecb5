// How the state of Kafka, the registry and the topics is shown to people.
import { durationText } from '../../core/duration.ts'
import type { Infrastructure, TopicState } from './infrastructure.ts'
import type { CommandShape } from '../../cli/operations/operation-command.ts'
import { printable, table } from '../../cli/terminal.ts'

export const infrastructureShape: CommandShape = {
  isWithoutSettings: true,
  text: stateText,
  hasFailed: (state: Infrastructure) => !isSound(state),
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

function stateText({ kafka, registry, topics }: Infrastructure): string {
  const missing = registry.subjects.filter(({ schemaId }) => schemaId === null)
  const problems = topics.flatMap((topic) => topic.problems)
  return [
    `Kafka     ${kafka.problem === null ? `cluster ${kafka.clusterId}` : printable(kafka.problem)}`,
    ...kafka.brokers.map(
      ({ id, host, port, isController }) =>
        `          broker ${id} at ${host}:${port}${isController ? ', controller' : ''}`,
    ),
    `registry  ${registry.problem === null ? registry.url : printable(registry.problem)}`,
    ...missing.map(
      ({ subject }) => `          the schema of ${subject} is not registered: run \`postrider setup\``,
    ),
    ...(topics.length > 0 ? ['', topicsTable(topics)] : []),
    ...problems.map(({ severity, message }) => `${severity}: ${message}`),
  ].join('\n')
}

const topicsTable = (topics: readonly TopicState[]): string =>
  table(
    ['TOPIC', 'PARTITIONS', 'COPIES', 'OUT OF SYNC', 'RETENTION'],
    topics.map((topic) => [
      topic.name,
      topic.partitions,
      topic.copies,
      topic.underReplicated,
      retentionOf(topic),
    ]),
  )

function retentionOf({ exists, cleanupPolicy, retentionMs }: TopicState): string {
  if (!exists) return 'missing'
  if (cleanupPolicy === 'compact') return 'the newest of each key'
  if (retentionMs === null) return 'for ever'
  return durationText(retentionMs)
}
