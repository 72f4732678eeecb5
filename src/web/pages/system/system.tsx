import { useLive } from '../../api/live.ts'
import type { SystemAnswer, InfrastructureAnswer } from '../../api/routes.ts'
import { PageTitle } from '../../app/shell.tsx'
import { countText, countOf } from '../../components/figures.ts'
import { Empty, NotKnown, NoValue, Note } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { Badge, type Tone } from '../../components/text.tsx'
import { Ago } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'
import { Infrastructure } from './infrastructure.tsx'
import { SystemTabs } from './system-tabs.tsx'

type Process = SystemAnswer['processes'][number]

/** What runs, and what it runs on. */
export function System() {
  const live = useLive('GET /system', {}, 5_000)
  const infrastructure = useLive('GET /infrastructure', {}, 15_000)
  return (
    <>
      <PageTitle title="System" curl={{ route: 'GET /system' }}>
        <a class="button" href="/api/v1/openapi.json" target="_blank" rel="noreferrer">
          API description
        </a>
      </PageTitle>
      <SystemTabs />
      <Loaded live={live} what="processes">
        {({ processes }) => (
          <>
            <Processes processes={processes} />
            <Lag processes={processes} topics={infrastructure.data?.topics ?? null} />
          </>
        )}
      </Loaded>
      {/* Below the processes: what comes first waits for them. */}
      {(live.data || live.failure) && (
        <Loaded live={infrastructure} what="the state of Kafka and the registry">
          {(state) => <Infrastructure state={state} />}
        </Loaded>
      )}
    </>
  )
}

function Processes({ processes }: { processes: readonly Process[] }) {
  const live = processes.filter(({ state }) => state === 'live')
  const versions = [...new Set(live.map(({ version }) => version))]
  const parts = new Set(live.flatMap(({ roles }) => roles))
  const missing = ['collector', 'forwarder'].filter((part) => !parts.has(part))
  return (
    <section>
      <div class="section-head">
        <h2>Processes</h2>
        <p>By the heartbeats of the last day</p>
      </div>
      {processes.length > 0 && missing.length > 0 && (
        <Note tone="warn">{`No ${missing.join(' and no ')} is running: start one with \`postrider run\`.`}</Note>
      )}
      {versions.length > 1 && <Note>{`Processes of several versions run: ${versions.join(', ')}.`}</Note>}
      {processes.length > 0 ? (
        <Table label="Processes" columns={columns} rows={processes} keyOf={({ instance }) => instance} />
      ) : (
        <Empty title="No process has sent a heartbeat yet.">
          <p>Each sends one every ten seconds.</p>
        </Empty>
      )}
    </section>
  )
}

const tones: Record<Process['state'], Tone> = { live: 'good', gone: 'bad', stopped: 'plain' }
const titles: Record<Process['state'], string> = {
  live: 'Its heartbeats come',
  gone: 'Three heartbeats are missing, and it did not say that it stops',
  stopped: 'It said that it stops',
}

const columns: Column<Process>[] = [
  {
    head: 'Process',
    isName: true,
    cell: ({ host, pid, roles }) => (
      <span class="thing">
        <span>{roles.join(', ')}</span>
        <span class="id faint">{`${host}, pid ${pid}`}</span>
      </span>
    ),
  },
  { head: 'State', cell: ({ state }) => <Badge tone={tones[state]} text={state} title={titles[state]} /> },
  { head: 'Version', moves: 'medium', cell: ({ version }) => version },
  { head: 'Started', moves: 'narrow', cell: ({ startedAt }) => <Ago at={startedAt} /> },
  { head: 'Last heartbeat', moves: 'narrow', cell: ({ seenAt }) => <Ago at={seenAt} /> },
  {
    head: 'Partitions',
    isNumber: true,
    moves: 'medium',
    cell: ({ roles, partitions }) =>
      roles.includes('forwarder') ? countText(partitions.length) : <NoValue why="No forwarder in it" />,
  },
  {
    head: 'Lag',
    isNumber: true,
    cell: ({ roles, partitions }) => {
      if (!roles.includes('forwarder')) return <NoValue why="No forwarder in it" />
      const known = partitions.flatMap(({ lag }) => lag ?? [])
      if (known.length < partitions.length)
        return <NotKnown why="Its heartbeat does not name all of it yet" />
      return countText(known.reduce((sum, lag) => sum + lag, 0))
    },
  },
  {
    head: 'Requests',
    isNumber: true,
    moves: 'medium',
    cell: ({ requestsInFlight }) =>
      requestsInFlight === null ? <NoValue why="No collector in it" /> : countText(requestsInFlight),
  },
]

interface ReadPartition {
  topic: string
  partition: number
  lag: number | null
  reader: string
}

interface ReadTopic {
  topic: string
  read: number
  /** Null while it is not known. */
  partitions: number | null
  lag: number | null
  maxLag: number | null
}

const maxRows = 200

/** What forwarders read, and how far they are behind: by topic, then by partition. */
export function Lag({
  processes,
  topics,
}: {
  processes: readonly Process[]
  topics: InfrastructureAnswer['topics'] | null
}) {
  const all = processes
    .filter(({ state }) => state === 'live')
    .flatMap(({ partitions, host, pid }) =>
      partitions.map((each): ReadPartition => ({ ...each, reader: `${host}, pid ${pid}` })),
    )
  const rows = byTopic(all, topics)
  const unread = rows.filter(({ read, partitions }) => partitions !== null && read < partitions)
  const worst = all.toSorted((a, b) => (b.lag ?? -1) - (a.lag ?? -1)).slice(0, maxRows)
  return (
    <section class="section">
      <div class="section-head">
        <h2>Partitions and lag</h2>
        <p>Records that forwarders have not finished; in retry tiers also those that are not due yet</p>
      </div>
      {all.length > 0 && unread.length > 0 && (
        <Note tone="warn">
          {`Not all partitions are read: ${unread.map(({ topic }) => topic).join(', ')}. That passes after a rebalance.`}
        </Note>
      )}
      {rows.length > 0 ? (
        <Table label="Partitions and lag" columns={topicColumns} rows={rows} keyOf={({ topic }) => topic} />
      ) : (
        <Empty title="No live forwarder reads anything.">
          <p>Start one: calls wait in Kafka until then, for as long as it keeps them.</p>
        </Empty>
      )}
      {all.length > 0 && (
        <details class="section">
          <summary>{`${countOf(all.length, 'partition')}, those with the largest lag first`}</summary>
          <Table
            label="Partitions"
            columns={partitionColumns}
            rows={worst}
            keyOf={({ topic, partition }) => `${topic}/${partition}`}
          />
        </details>
      )}
    </section>
  )
}

function byTopic(all: readonly ReadPartition[], topics: InfrastructureAnswer['topics'] | null): ReadTopic[] {
  // As the deployment has them: retry tiers by their delay.
  const order = (topic: string): number => topics?.findIndex(({ name }) => name === topic) ?? 0
  const found = new Map<string, ReadPartition[]>()
  for (const each of all) found.set(each.topic, [...(found.get(each.topic) ?? []), each])
  return [...found]
    .map(([topic, read]): ReadTopic => {
      const lags = read.flatMap(({ lag }) => lag ?? [])
      const isKnown = lags.length === read.length
      return {
        topic,
        read: read.length,
        partitions: topics?.find(({ name }) => name === topic)?.partitions ?? null,
        lag: isKnown ? lags.reduce((sum, lag) => sum + lag, 0) : null,
        maxLag: isKnown ? Math.max(...lags) : null,
      }
    })
    .sort((a, b) => order(a.topic) - order(b.topic) || (a.topic < b.topic ? -1 : 1))
}

const unknownLag = <NotKnown why="The heartbeats do not name all of it yet" />

const topicColumns: Column<ReadTopic>[] = [
  { head: 'Topic', isName: true, cell: ({ topic }) => <span class="id">{topic}</span> },
  {
    head: 'Partitions read',
    isNumber: true,
    cell: ({ read, partitions }) => (
      <span class={partitions !== null && read < partitions ? 'is-bad' : ''}>
        {partitions === null ? countText(read) : `${countText(read)} of ${countText(partitions)}`}
      </span>
    ),
  },
  { head: 'Lag', isNumber: true, cell: ({ lag }) => (lag === null ? unknownLag : countText(lag)) },
  {
    head: 'Largest of one',
    isNumber: true,
    moves: 'narrow',
    cell: ({ maxLag }) => (maxLag === null ? unknownLag : countText(maxLag)),
  },
]

const partitionColumns: Column<ReadPartition>[] = [
  {
    head: 'Partition',
    isName: true,
    cell: ({ topic, partition }) => <span class="id">{`${topic}/${partition}`}</span>,
  },
  { head: 'Lag', isNumber: true, cell: ({ lag }) => (lag === null ? unknownLag : countText(lag)) },
  { head: 'Read by', moves: 'narrow', cell: ({ reader }) => <span class="id">{reader}</span> },
]
