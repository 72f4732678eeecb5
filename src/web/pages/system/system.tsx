import { PageTitle } from '../../app/page-title.tsx'
import { useLive } from '../../api/live.ts'
import type { SystemAnswer } from '../../api/routes.ts'
import { Badge, type Tone } from '../../components/badge.tsx'
import { CopyAsCurl } from '../../components/copy.tsx'
import { countText } from '../../components/figures.ts'
import { Loaded } from '../../components/loaded.tsx'
import { Empty, NotKnown, NoValue, Note } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { Ago } from '../../components/time.tsx'
import { Infrastructure } from './infrastructure.tsx'
import { Lag } from './lag.tsx'
import { SystemTabs } from './system-tabs.tsx'

type Process = SystemAnswer['processes'][number]

/** What runs, and what it runs on. */
export function System() {
  const live = useLive('GET /system', {}, 5_000)
  const infrastructure = useLive('GET /infrastructure', {}, 15_000)
  return (
    <>
      <PageTitle title="System">
        <CopyAsCurl route="GET /system" />
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
      <Loaded live={infrastructure} what="the state of Kafka and the registry">
        {(state) => <Infrastructure state={state} />}
      </Loaded>
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
  { head: 'Version', hides: 'narrow', cell: ({ version }) => version },
  { head: 'Started', hides: 'narrow', cell: ({ startedAt }) => <Ago at={startedAt} /> },
  { head: 'Last heartbeat', cell: ({ seenAt }) => <Ago at={seenAt} /> },
  {
    head: 'Partitions',
    isNumber: true,
    hides: 'narrow',
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
    hides: 'medium',
    cell: ({ requestsInFlight }) =>
      requestsInFlight === null ? <NoValue why="No collector in it" /> : countText(requestsInFlight),
  },
]
