import { durationText } from '../../../core/duration.ts'
import type { InfrastructureAnswer } from '../../api/routes.ts'
import { Badge } from '../../components/text.tsx'
import { countOf, countText } from '../../components/figures.ts'
import { Empty, NoValue, Note, sentence } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'

type Topic = InfrastructureAnswer['topics'][number]

/** Kafka, the registry, and the topics of this deployment. */
export function Infrastructure({ state }: { state: InfrastructureAnswer }) {
  const { kafka, registry, topics } = state
  const problems = topics.flatMap((topic) => topic.problems)
  return (
    <>
      <section class="section">
        <h2 class="hidden">Kafka and the schema registry</h2>
        <div class="pair-cards">
          <Kafka kafka={kafka} />
          <Registry registry={registry} />
        </div>
      </section>
      <section class="section">
        <div class="section-head">
          <h2>Topics</h2>
          <p>Of this deployment</p>
        </div>
        {problems.length > 0 && (
          <Note tone="warn">
            <ul>
              {problems.map(({ message }) => (
                <li key={message}>{sentence(message)}</li>
              ))}
            </ul>
          </Note>
        )}
        {topics.length > 0 ? (
          <Table label="Topics" columns={columns} rows={topics} keyOf={({ name }) => name} />
        ) : (
          <Empty title="The topics are not known while Kafka does not answer." />
        )}
      </section>
    </>
  )
}

function Kafka({ kafka }: Pick<InfrastructureAnswer, 'kafka'>) {
  const { problem, addresses, clusterId, brokers } = kafka
  return (
    <div class="card">
      <h3 class="with-badge">
        Kafka <Badge tone={problem === null ? 'good' : 'bad'} text={problem === null ? 'answers' : 'away'} />
      </h3>
      {problem !== null && <Note tone="warn">{sentence(problem)}</Note>}
      <dl class="pairs">
        <dt>Addresses</dt>
        <dd class="id">{addresses.join(', ')}</dd>
        <dt>Cluster</dt>
        <dd class="id">{clusterId ?? <NoValue why="Not known while it does not answer" />}</dd>
        <dt>Brokers</dt>
        <dd>
          {brokers.length === 0 && <NoValue why="Not known while it does not answer" />}
          <ul>
            {brokers.map(({ id, host, port, isController }) => (
              <li key={id}>
                <span class="id">{`${id} at ${host}:${port}`}</span>
                {isController && <span class="faint"> controller</span>}
              </li>
            ))}
          </ul>
        </dd>
      </dl>
    </div>
  )
}

function Registry({ registry: { problem, url, subjects } }: Pick<InfrastructureAnswer, 'registry'>) {
  const missing = subjects.filter(({ schemaId }) => schemaId === null)
  return (
    <div class="card">
      <h3 class="with-badge">
        Schema registry{' '}
        <Badge tone={problem === null ? 'good' : 'bad'} text={problem === null ? 'answers' : 'away'} />
      </h3>
      {problem !== null && <Note tone="warn">{sentence(problem)}</Note>}
      {missing.length > 0 && (
        <Note tone="warn">
          {`This version’s schema is not registered for ${missing.map(({ subject }) => subject).join(', ')}. Run `}
          <code>npx postrider setup</code>.
        </Note>
      )}
      <dl class="pairs">
        <dt>Address</dt>
        <dd class="id">{url}</dd>
        <dt>Schemas</dt>
        <dd>
          {problem !== null ? (
            <NoValue why="Not known while it does not answer" />
          ) : (
            `${countText(subjects.length - missing.length)} of ${countOf(subjects.length, 'subject')} registered`
          )}
        </dd>
      </dl>
    </div>
  )
}

const missing = <NoValue why="The topic is missing" />

const columns: Column<Topic>[] = [
  { head: 'Topic', isName: true, cell: ({ name }) => <span class="id">{name}</span> },
  { head: 'State', cell: (topic) => <TopicBadge topic={topic} /> },
  { head: 'Partitions', isNumber: true, cell: ({ partitions }) => countText(partitions) },
  { head: 'Copies', isNumber: true, moves: 'narrow', cell: ({ copies }) => countText(copies) },
  { head: 'Kept', moves: 'narrow', cell: (topic) => <Kept topic={topic} /> },
  {
    head: 'Largest record',
    isNumber: true,
    moves: 'medium',
    cell: ({ maxMessageBytes }) =>
      maxMessageBytes === null ? missing : `${countText(Math.round(maxMessageBytes / 1_024))} KB`,
  },
]

function TopicBadge({ topic }: { topic: Topic }) {
  const { exists, problems, underReplicated, withoutLeader } = topic
  if (!exists) return <Badge tone="bad" text="missing" />
  if (withoutLeader > 0)
    return <Badge tone="bad" text={`${countOf(withoutLeader, 'partition')} without leader`} />
  if (problems.some(({ severity }) => severity === 'error')) return <Badge tone="bad" text="wrong settings" />
  if (underReplicated > 0)
    return <Badge tone="warn" text={`${countOf(underReplicated, 'partition')} out of sync`} />
  if (problems.length > 0) return <Badge tone="warn" text="see above" />
  return <Badge tone="good" text="sound" />
}

function Kept({ topic: { exists, cleanupPolicy, retentionMs } }: { topic: Topic }) {
  if (!exists) return missing
  if (cleanupPolicy === 'compact') return <>newest of each key</>
  return <>{retentionMs === null ? 'for ever' : durationText(retentionMs)}</>
}
