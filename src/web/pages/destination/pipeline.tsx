import { Fragment, type ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { pathTo } from '../../../console/page-paths.ts'
import { ApiFailure, request } from '../../api/request.ts'
import type { StatsAnswer, DestinationAnswer, DestinationNowAnswer } from '../../api/routes.ts'
import { attemptsLink, callsLink, deadLettersLink } from '../../components/figure-links.ts'
import { countText, wordsOf, compactText, msText, percentText } from '../../components/figures.ts'
import { NotKnown, NoValue } from '../../components/notices.tsx'
import { Bar, Mark, totalOf } from '../../components/share-bar.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { Badge, Figure, HealthBadge } from '../../components/text.tsx'
import { now as clock, Ago } from '../../components/time.tsx'
import type { Period } from './period.ts'

/** As many sources are asked for what they received. */
const maxSources = 20

interface PipelineProps {
  stats: StatsAnswer
  sourceIds: readonly string[]
  asked: Period['asked']
  everyMs: number
}

interface Stage {
  name: string
  /** To the list of what it counts; none where there is no list. */
  href?: string
  /** Null where it is not known. */
  count: number | null
  tone: 'good' | 'bad' | 'plain' | 'warn'
  note?: ComponentChildren
  reasons?: Record<string, number>
  hrefOf?: (reason: string) => string | undefined
}

/** What became of the calls of the period: each step is counted by itself. */
export function Pipeline({ stats, ...given }: PipelineProps) {
  const { totals, pipeline } = stats
  const { planned, sentAgain, waitedBefore, delivered, waiting, deadLettered, held, unaccounted } = pipeline
  const period = { since: stats.from, until: stats.to }
  const attempts = (outcome: string) => attemptsLink(stats.destinationId, { outcome, ...period })
  const calls = (step: string, reason = '') => callsLink(stats.destinationId, { step, reason })
  const ofLetters = { destination: stats.destinationId, ...period }
  const stages: Stage[] = [
    { name: 'Delivered', count: delivered, tone: 'good', href: attempts('success') },
    {
      ...{ name: 'Waiting for a retry', count: waiting, tone: 'warn', note: 'now, in the retry tiers' },
      href: calls('waiting'),
    },
    {
      ...{ name: 'Dead letters', count: deadLettered, tone: 'bad', reasons: totals.deadLetterReasons },
      ...{
        href: deadLettersLink(ofLetters),
        hrefOf: (reason: string) => deadLettersLink({ ...ofLetters, reason }),
      },
    },
    { name: 'Held', count: held, tone: 'plain', note: 'by a pause', href: calls('held') },
    {
      ...{ name: 'Skipped', count: pipeline.skipped, tone: 'plain', reasons: totals.skipReasons },
      href: calls('skipped'),
      hrefOf: (reason) =>
        /^(not_chosen|no_consent|filtered)$/.test(reason) ? calls('skipped', reason) : undefined,
    },
    { name: 'Erased', count: pipeline.erased, tone: 'plain', note: 'the user was deleted' },
    {
      name: 'Unaccounted',
      count: unaccounted,
      tone: 'bad',
      note: (
        <>
          came in and left no trace: <a href={pathTo('audit')}>an audit</a> names the offsets
        </>
      ),
    },
  ]
  const parts = [...stages]
  const total = totalOf(parts)
  const released = Object.values(totals.releaseReasons).reduce((sum, count) => sum + count, 0)
  if (released > 0)
    stages.push({
      ...{ name: notWaitedFor, count: released, tone: 'warn' },
      ...{ note: 'later calls of their users may overtake them', reasons: totals.releaseReasons },
    })
  return (
    <section class="card pipeline" aria-labelledby="pipeline">
      <h2 id="pipeline" class="hidden">
        What became of its calls
      </h2>
      <div class="pipeline-in">
        <div>
          <p class="faint">Received by its sources</p>
          <p class="path-count">
            <Received {...given} asOf={stats.asOf} />
          </p>
        </div>
        <Incoming name="Looked at for it" count={planned} />
        {sentAgain > 0 && <Incoming name="Sent again" count={sentAgain} />}
        {waitedBefore !== null && waitedBefore > 0 && <Incoming name="Waited before" count={waitedBefore} />}
      </div>
      <div class="pipeline-out">
        <Bar parts={parts} />
        <ul aria-label="What became of them">
          {stages.map(({ name, href, count, tone, note, reasons = {}, hrefOf }) => (
            <li key={name} class={count === 0 ? 'is-none' : ''}>
              <span class="pipeline-name">
                <Mark tone={tone} />
                {name}
              </span>
              <span
                class={
                  name === 'Unaccounted' && (count ?? 0) > 0 ? 'pipeline-count is-bad' : 'pipeline-count'
                }
              >
                {count === null ? (
                  <NotKnown why={notCounted} />
                ) : (
                  <Figure href={count > 0 ? href : undefined} what={name}>
                    {countText(count)}
                  </Figure>
                )}
              </span>
              <span class="pipeline-share">
                {count && total > 0 && name !== notWaitedFor ? percentText(count / total) : ''}
              </span>
              <span class="pipeline-note">
                {count === null || count === 0
                  ? ''
                  : Object.keys(reasons).length > 0
                    ? Object.entries(reasons)
                        .toSorted(([, a], [, b]) => b - a)
                        .map(([reason, each], index) => (
                          <Fragment key={reason}>
                            {index > 0 && ', '}
                            <Figure href={hrefOf?.(reason)} what={`${name}: ${wordsOf(reason)}`}>
                              {countText(each)}
                            </Figure>{' '}
                            {wordsOf(reason)}
                          </Fragment>
                        ))
                    : note}
              </span>
            </li>
          ))}
        </ul>
      </div>
    </section>
  )
}

/** Of those above. */
const notWaitedFor = 'Not waited for'
const notCounted = 'What waits in the retry tiers could not be counted, or it moves'

function Incoming({ name, count }: { name: string; count: number }) {
  return (
    <div>
      <p class="faint">{name}</p>
      <p class="path-count">{countText(count)}</p>
    </div>
  )
}

/** By collectors: calls that were written to Kafka directly are not in it. */
function Received({
  sourceIds,
  asked,
  everyMs,
  asOf,
}: Omit<PipelineProps, 'stats'> & { asOf: string | null }) {
  const [count, setCount] = useState<number | null>(null)
  const isTooMany = sourceIds.length > maxSources
  // Together with the rest: again when that was counted further.
  const turn = asOf === null ? 0 : Math.floor(Date.parse(asOf) / (everyMs || Infinity))
  useEffect(() => {
    if (isTooMany) return
    const ending = new AbortController()
    const ask = (id: string) =>
      request('GET /sources/{id}/stats', { id, query: asked, signal: ending.signal })
    Promise.all(sourceIds.map(ask)).then(
      (answers) => setCount(answers.reduce((sum, { data }) => sum + data.totals.accepted, 0)),
      (error: unknown) => {
        if (ending.signal.aborted) return
        if (!(error instanceof ApiFailure)) throw error
        setCount(null)
      },
    )
    return () => ending.abort()
  }, [sourceIds.join(), JSON.stringify(asked), turn])
  if (count === null)
    return <NotKnown why={isTooMany ? `It has more than ${maxSources} sources` : 'It is being counted'} />
  return (
    <span title="At collectors; calls that were written to Kafka directly are not in it">
      {countText(count)}
    </span>
  )
}

type UrlNow = DestinationNowAnswer['urls'][number]
interface Row {
  id: string
  /** To its attempts of the period. */
  hrefOf: (outcome: string) => string
  number: number
  url: string
  goneAt: string | null
  now: UrlNow | null
  figures: StatsAnswer['totals']['urls'][number] | null
}

/** What a health word does not say: that an endpoint is being tried again. */
const breakerWords: Record<string, string> = { ramp: 'recovering', half_open: 'trying again' }

/** How each URL is paced now, and how it answered in the period. */
export function Urls({
  destination: { urls },
  state,
  stats,
}: {
  destination: DestinationAnswer
  state: DestinationNowAnswer | null
  stats: StatsAnswer
}) {
  const { destinationId, from, to } = stats
  const rows = urls.map(({ id, number, url, goneAt }): Row => ({
    id,
    hrefOf: (outcome) => attemptsLink(destinationId, { url: id, outcome, since: from, until: to }),
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
    moves: 'narrow',
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
    moves: 'narrow',
    cell: ({ now }) => (now ? compactText(now.queued) : <NotKnown />),
  },
  {
    head: 'Attempts',
    isNumber: true,
    moves: 'narrow',
    cell: ({ figures, hrefOf }) => (
      <Figure href={figures?.attempts ? hrefOf('') : undefined} what="Attempts">
        {compactText(figures?.attempts ?? 0)}
      </Figure>
    ),
  },
  {
    head: 'Success',
    isNumber: true,
    moves: 'narrow',
    cell: ({ figures }) =>
      figures?.successRate === null || figures === null ? none : percentText(figures.successRate),
  },
  {
    head: 'p95',
    isNumber: true,
    moves: 'narrow',
    cell: ({ figures }) => (figures === null || figures.p95Ms === null ? none : msText(figures.p95Ms)),
  },
  {
    head: 'Failed',
    moves: 'medium',
    cell: ({ figures, hrefOf }) => {
      const failed = Object.entries(figures?.outcomes ?? {}).filter(([outcome]) => outcome !== 'success')
      if (failed.length === 0) return none
      return failed.map(([outcome, count], index) => (
        <Fragment key={outcome}>
          {index > 0 && ', '}
          <Figure href={hrefOf(outcome)} what={`Attempts: ${wordsOf(outcome)}`}>
            {compactText(count)}
          </Figure>{' '}
          {wordsOf(outcome)}
        </Fragment>
      ))
    },
  },
]

function State({ goneAt, now }: { goneAt: string | null; now: UrlNow | null }) {
  if (goneAt !== null)
    return (
      <>
        <Badge tone="bad" text="gone" /> <Ago at={goneAt} />
      </>
    )
  if (!now) return <NotKnown />
  const more = now.breaker === null ? undefined : breakerWords[now.breaker]
  return (
    <>
      <HealthBadge health={now.health} />
      {more !== undefined && <span class="faint"> {more}</span>}
      {now.pausedUntil !== null && Date.parse(now.pausedUntil) > clock.value && (
        <span class="faint">
          {' '}
          next <Ago at={now.pausedUntil} />
        </span>
      )}
    </>
  )
}
