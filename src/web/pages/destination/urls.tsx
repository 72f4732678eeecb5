import type { DestinationAnswer, DestinationSummary, StatsAnswer } from '../../api/routes.ts'
import { now as clock } from '../../app/clock.ts'
import { Badge, type Tone } from '../../components/badge.tsx'
import { compactText, countText, msText, percentText, wordsOf } from '../../components/figures.ts'
import { NotKnown, NoValue } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { Ago } from '../../components/time.tsx'

type UrlNow = DestinationSummary['urls'][number]
interface Row {
  id: string
  number: number
  url: string
  goneAt: string | null
  now: UrlNow | null
  figures: StatsAnswer['totals']['urls'][number] | null
}

const breakerTones: Record<string, Tone> = {
  closed: 'good',
  ramp: 'warn',
  half_open: 'warn',
  paused: 'warn',
  open: 'bad',
}
const breakerWords: Record<string, string> = {
  closed: 'sending',
  ramp: 'recovering',
  half_open: 'trying again',
  paused: 'asked to wait',
  open: 'down',
}

/** How each URL is paced now, and how it answered in the period. */
export function Urls({
  destination: { urls },
  state,
  stats,
}: {
  destination: DestinationAnswer
  state: DestinationSummary | null
  stats: StatsAnswer
}) {
  const rows = urls.map(({ id, number, url, goneAt }): Row => ({
    id,
    number,
    url,
    goneAt,
    now: state?.urls.find(({ urlId }) => urlId === id) ?? null,
    figures: stats.totals.urls.find(({ urlId }) => urlId === id) ?? null,
  }))
  return (
    <section class="section" aria-labelledby="urls">
      <div class="section-head">
        <h2 id="urls">URLs</h2>
      </div>
      <Table label="How each URL answers" columns={columns} rows={rows} keyOf={({ id }) => id} />
    </section>
  )
}

const none = <NoValue why="No attempts in this period" />

const columns: Column<Row>[] = [
  { head: 'URL', isName: true, cell: ({ url }) => <span class="id">{url}</span> },
  { head: 'State', cell: ({ goneAt, now }) => <State goneAt={goneAt} now={now} /> },
  {
    head: 'In flight',
    isNumber: true,
    cell: ({ now }) =>
      !now || now.limit === null ? (
        <NotKnown why="No forwarder has sent to it yet" />
      ) : (
        <span title={`${countText(now.inFlight)} requests in flight; the limit is ${countText(now.limit)}`}>
          {countText(now.inFlight)} <span class="faint">of {countText(now.limit)}</span>
        </span>
      ),
  },
  {
    head: 'Queued',
    isNumber: true,
    hides: 'narrow',
    cell: ({ now }) => (now ? compactText(now.queued) : <NotKnown />),
  },
  {
    head: 'Attempts',
    isNumber: true,
    hides: 'narrow',
    cell: ({ figures }) => compactText(figures?.attempts ?? 0),
  },
  {
    head: 'Success',
    isNumber: true,
    cell: ({ figures }) =>
      figures?.successRate === null || figures === null ? none : percentText(figures.successRate),
  },
  {
    head: 'p95',
    isNumber: true,
    hides: 'narrow',
    cell: ({ figures }) => (figures === null || figures.p95Ms === null ? none : msText(figures.p95Ms)),
  },
  {
    head: 'Failed',
    hides: 'medium',
    cell: ({ figures }) =>
      Object.entries(figures?.outcomes ?? {})
        .filter(([outcome]) => outcome !== 'success')
        .map(([outcome, count]) => `${compactText(count)} ${wordsOf(outcome)}`)
        .join(', ') || none,
  },
]

function State({ goneAt, now }: { goneAt: string | null; now: UrlNow | null }) {
  if (goneAt !== null)
    return (
      <>
        <Badge tone="bad" text="gone" /> <Ago at={goneAt} />
      </>
    )
  if (!now || now.breaker === null) return <NotKnown why="No forwarder has sent to it yet" />
  return (
    <>
      <Badge tone={breakerTones[now.breaker] ?? 'plain'} text={breakerWords[now.breaker] ?? now.breaker} />
      {now.pausedUntil !== null && Date.parse(now.pausedUntil) > clock.value && (
        <span class="faint">
          {' '}
          next <Ago at={now.pausedUntil} />
        </span>
      )}
    </>
  )
}
