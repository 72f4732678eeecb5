import { useLive } from '../../api/live.ts'
import type { DestinationAnswer, DestinationCallAnswer } from '../../api/routes.ts'
import { query, setQuery } from '../../app/address.ts'
import { Select } from '../../components/fields.tsx'
import { wordsOf } from '../../components/figures.ts'
import { Empty, Note, NoValue } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { CopyAsCurl, MessageLink } from '../../components/text.tsx'
import { Ago } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'

const steps = [
  ['waiting', 'waiting for a retry'],
  ['held', 'held by its pause'],
  ['skipped', 'skipped'],
] as const

/** As the API has them. */
const reasons = ['not_chosen', 'no_consent', 'filtered']

/** What was looked through: no list of all there is is kept. */
const reach = {
  waiting: 'The 200 that are due first, of the first 20,000 records of the retry tiers.',
  held: 'Of the newest few thousand calls, those that it would have got since its pause began; before them up to 100 retries that came due meanwhile.',
  skipped:
    'Of the newest few thousand calls, ten that its settings leave out as they are now. Others were skipped too.',
}

/** The calls behind a step of what became of its calls. */
export function DestinationCalls({ destination: { id, pause } }: { destination: DestinationAnswer }) {
  const value = (name: string) => query.value.get(name) ?? ''
  const [step] = steps.find(([each]) => each === value('step')) ?? steps[0]
  const reason = step === 'skipped' ? value('reason') : ''
  const asked = { id, query: { step, reason } }
  const live = useLive('GET /destinations/{id}/calls', asked, 30_000)
  return (
    <>
      <div class="filters">
        <Select
          label="Calls"
          value={step}
          choices={steps}
          change={(to) => setQuery({ step: to, reason: null })}
        />
        {step === 'skipped' && (
          <Select
            label="Because"
            value={reason}
            choices={[['', 'any reason'], ...reasons.map((each) => [each, wordsOf(each)] as const)]}
            change={(to) => setQuery({ reason: to })}
          />
        )}
        <CopyAsCurl route="GET /destinations/{id}/calls" asked={asked} />
      </div>
      <Note>{step === 'held' && pause === null ? 'It is not paused: nothing is held.' : reach[step]}</Note>
      <Loaded live={live} what="the calls">
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="There is none among those." />
          ) : (
            <Table
              label="Calls"
              columns={step === 'waiting' ? waitingColumns : columns}
              rows={data}
              keyOf={({ messageId, dueAt }) => `${messageId} ${dueAt}`}
            />
          )
        }
      </Loaded>
    </>
  )
}

const call: Column<DestinationCallAnswer> = {
  head: 'Call',
  isName: true,
  cell: ({ messageId }) => <MessageLink messageId={messageId} />,
}
const type: Column<DestinationCallAnswer> = {
  head: 'Type',
  cell: ({ type, event }) => (
    <>
      <span class={`call-type call-${type}`}>{type}</span> <span class="foreign">{event}</span>
    </>
  ),
}

const columns: Column<DestinationCallAnswer>[] = [
  call,
  type,
  {
    head: 'Received',
    cell: ({ receivedAt }) => (receivedAt === null ? <NoValue why="not known" /> : <Ago at={receivedAt} />),
  },
  {
    head: 'Because',
    moves: 'narrow',
    cell: ({ reason, tier, dueAt }) => {
      if (reason !== null) return wordsOf(reason)
      return dueAt === null ? (
        'held'
      ) : (
        <>
          held: a retry of {tier}, was due <Ago at={dueAt} />
        </>
      )
    },
  },
]

const waitingColumns: Column<DestinationCallAnswer>[] = [
  call,
  type,
  {
    head: 'Next try',
    cell: ({ dueAt }) => (dueAt === null ? <NoValue why="not known" /> : <Ago at={dueAt} />),
  },
  { head: 'Tier', moves: 'narrow', cell: ({ tier }) => tier },
  { head: 'Attempts', isNumber: true, moves: 'narrow', cell: ({ attempts }) => String(attempts ?? 0) },
]
