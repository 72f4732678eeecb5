// A collector that is away for a whole minute: what becomes of the calls that each SDK is given meanwhile.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import { launchBrowser } from '../support/browser/chromium.ts'
import { collected, startCollector, withSource, type RunningCollector } from '../support/calls/collectors.ts'
import { deploy, type Deployment } from '../support/deployment/deployment.ts'
import { readPage } from '../support/docs.ts'
import { parseExposition } from '../support/exposition.ts'
import { needed } from '../support/ops/tools.ts'
import { createAuthority } from '../support/secured/certificates.ts'
import { ownAddress, startFront } from '../support/senders/front.ts'
import { callsOfSdk, runSdk } from '../support/senders/node-sdks.ts'
import { senders, started, toolsOf, trusting } from '../support/senders/programs.ts'
import type { Watched } from '../support/senders/watched.ts'
import { segmentsOwn, visitor, ways, website } from '../support/senders/web-pages.ts'
import { until } from '../support/until.ts'

const awayMs = 60_000
/**
 * Their `sentAt` is of the moment when they closed a batch, not of when they sent it: `timestamp` is late by as long as the
 * batch waited, as docs/senders.md says.
 */
const sentAtIsOfTheirBatch = new Set(['analytics-kotlin'])
/** What waits twice as long each time, more or less, comes again up to that much later. */
const longMs = 240_000
/** analytics-kotlin sends every half a minute, unless it keeps its calls, as docs/senders.md says it does now and then. */
const twoSendsMs = 75_000

const pages = [...Object.values(ways), segmentsOwn]
const onNode = [
  { sdk: 'segment', name: '@segment/analytics-node', isPatient: true },
  { sdk: 'rudder', name: '@rudderstack/rudder-sdk-node', isPatient: false },
] as const

test('docs/senders.md says of each SDK what becomes of calls in a minute without a collector', () => {
  const [, section] = readPage('docs/senders.md').split('\n## A minute without a collector\n')
  const rows = section!
    .split('\n## ')[0]!
    .matchAll(/^\| (?!SDK|-)(.*?) *\| (arrive or are given up|arrive|are given up)\b/gm)
  const said = Array.from(rows, ([, sdks, outcome]) =>
    sdks!.split(', ').map((sdk) => [sdk.replaceAll('`', ''), outcome]),
  )
  const outcomes = [
    ...pages.map(({ sdk }) => [sdk, true] as const),
    ...onNode.map(({ name, isPatient }) => [name, isPatient] as const),
    ...senders.map(({ sdk, isPatient }) => [sdk, isPatient] as const),
  ].map(([sdk, isPatient]) => [
    sdk,
    isPatient === 'at times' ? 'arrive or are given up' : isPatient ? 'arrive' : 'are given up',
  ])
  assert.deepEqual(said.flat().toSorted(), outcomes.toSorted())
})

/** A program that sends calls while the collector is away, and ends. */
interface Sending {
  source: string
  ended: Promise<{ status: number | null; output: string }>
}

/** With an id of its own: analytics-kotlin keeps what it did not send in a folder of the key. */
async function newSource(deployment: Deployment): Promise<{ source: string; key: string }> {
  const source = `shop-${randomUUID()}`
  await withSource(deployment, source)
  return { source, key: `key-of-${source}` }
}

function acceptedFrom({ counts }: RunningCollector, source: string): number {
  const { samples } = parseExposition([...counts.expose()].join(''))
  let sum = 0
  for (const [series, count] of samples)
    if (series.includes(`{source="${source}",`) && series.includes('result="accepted"')) sum += count
  return sum
}

// One collector and one minute for all of them.
test('a collector is away for a minute', { concurrency: true }, async (t) => {
  const deployment = await deploy(t, { TRUSTED_PROXIES: '127.0.0.1/32' })
  const address = ownAddress()
  const before = await startCollector(deployment, { host: address })
  const { url, port } = before
  const authority = await createAuthority(t)
  // Where TLS ends, for what speaks nothing else.
  const tls = await authority.issue({ addresses: [address] })
  const front = await startFront(t, before, { tls, address })
  const opened = await openPages(t, deployment, front.host)

  await Promise.all([before.stop(), front.close()])
  const programs = await Promise.all(
    senders.map(async (sender) => {
      const { skip } = needed(...toolsOf(sender))
      if (skip !== false) return { sender, skip, running: null }
      const { source, key } = await newSource(deployment)
      const watched = await started(t, sender, {
        COLLECTOR: sender.isForApps ? front.host : url,
        WRITE_KEY: key,
        ...(sender.isForApps && (await trusting(authority.caFile))),
      })
      return { sender, skip, running: { source, watched, ended: watched.end(awayMs + longMs) } }
    }),
  )
  const nodes = await Promise.all(
    onNode.map(async ({ sdk, ...about }) => {
      const { source, key } = await newSource(deployment)
      const ended = runSdk(sdk, url, { key, patienceMs: awayMs + longMs })
      return { ...about, source, ended: ended.then(({ status, stderr }) => ({ status, output: stderr })) }
    }),
  )
  for (const { page } of opened)
    await page.evaluate("for (let n = 0; n < 3; n++) window.sdk.track('Away ' + n)")

  // What gives up has done so: how long that takes hangs on the machine as well.
  const givenUp = [
    ...programs.flatMap(({ sender, running }) => (running && !sender.isPatient ? [running.ended] : [])),
    ...nodes.flatMap(({ isPatient, ended }) => (isPatient ? [] : [ended])),
  ]
  const back = Promise.all([delay(awayMs), ...givenUp]).then(async () => {
    const at = Date.now()
    const config = { ...deployment.config, collectorPort: port }
    const collector = await startCollector(deployment, { host: address, config })
    await front.open()
    return { at, collector }
  })

  /** That this number of calls, made while it was away, come once it is back, each once; all but `mayLose` of them. */
  const assertCame = async (
    name: string,
    source: string,
    count: number,
    mayLose = 0,
  ): Promise<AnalyticsCall[]> => {
    const { at, collector } = await back
    await until(() => acceptedFrom(collector, source) >= count - mayLose, longMs, `${count} calls`)
    const accepted = acceptedFrom(collector, source)
    const calls = (await collected(deployment)).filter(
      ({ sourceId, receivedAt }) => sourceId === source && receivedAt >= at,
    )
    // What was not sent was not accepted either.
    if (mayLose === 0 || calls.length !== count - mayLose) assert.equal(calls.length, count)
    else assert.equal(calls.length, accepted)
    assert.equal(new Set(calls.map(({ messageId }) => messageId)).size, calls.length)
    for (const { timestamp, originalTimestamp } of calls) {
      const madeAt = sentAtIsOfTheirBatch.has(name) ? originalTimestamp! : timestamp
      assert.ok(madeAt < at, `made ${madeAt - at} ms too late`)
    }
    const last = Math.max(...calls.map(({ receivedAt }) => receivedAt))
    t.diagnostic(`${name}: the last call came ${Math.round((last - at) / 1_000)} s after it was back`)
    return calls
  }
  /** Whether it asks nobody any more, before any of its calls has come. */
  const keepsItsCalls = async (source: string, watched: Watched): Promise<boolean> => {
    const { collector } = await back
    let asked = -1
    let lastAt = performance.now()
    const isQuiet = () => performance.now() > lastAt + twoSendsMs
    const look = async () => {
      const { length } = await watched.asked()
      if (length !== asked) lastAt = performance.now()
      asked = length
      return acceptedFrom(collector, source) > 0 || isQuiet()
    }
    await until(look, longMs, 'a call, or that nobody is asked')
    return acceptedFrom(collector, source) === 0
  }
  const assertGivenUp = async ({ source, ended }: Sending): Promise<void> => {
    const { status, output } = await ended
    assert.equal(status, 1, output)
    await back
    const calls = await collected(deployment)
    assert.ok(calls.every(({ sourceId }) => sourceId !== source))
  }

  await Promise.all([
    ...opened.map(({ name, source }) =>
      t.test(`${name}: calls of an open page arrive once it is back, each once`, async () => {
        const calls = await assertCame(name, source, 3)
        const events = calls.map(({ event }) => event)
        assert.deepEqual(events.toSorted(), ['Away 0', 'Away 1', 'Away 2'])
      }),
    ),
    ...nodes.map(({ name, isPatient, ...sending }) =>
      isPatient
        ? t.test(`${name}: calls arrive once it is back, each once`, async () => {
            await assertCame(name, sending.source, callsOfSdk)
            const { status, output } = await sending.ended
            assert.equal(status, 0, output)
          })
        : t.test(`${name}: calls are given up, and the program learns it`, () => assertGivenUp(sending)),
    ),
    ...programs.map(({ sender: { sdk, types, isPatient, mayLose, isForApps }, skip, running }) => {
      const arrive = async () => {
        const { source, watched, ended } = running!
        if (isForApps && (await keepsItsCalls(source, watched))) {
          t.diagnostic(`${sdk}: it kept its calls`)
          watched.endInput()
          assert.equal((await ended).status, 0)
          return
        }
        const calls = await assertCame(sdk, source, types.length, mayLose)
        const came: string[] = calls.map(({ type }) => type)
        assert.deepEqual(came.toSorted(), types.filter((type) => came.includes(type)).toSorted())
        watched.endInput()
        const { status, output } = await ended
        assert.equal(status, 0, output)
        await assertAskedAgain(watched, [new URL(url).host, front.host])
      }
      const areGivenUp = () => assertGivenUp(running!)
      if (isPatient === 'at times')
        return t.test(
          `${sdk}: calls arrive, each once, or the program learns that they do not`,
          { skip },
          async () => ((await running!.ended).status === 0 ? arrive() : areGivenUp()),
        )
      return isPatient
        ? t.test(`${sdk}: calls arrive once it is back, each once`, { skip }, arrive)
        : t.test(`${sdk}: calls are given up, and the program learns it`, { skip }, areGivenUp)
    }),
  ])
})

/** A page of each way, whose SDK is there: the collector serves it. */
async function openPages(
  t: TestContext,
  deployment: Deployment,
  host: string,
): Promise<{ name: string; source: string; page: Page }[]> {
  const browser = await launchBrowser()
  t.after(() => browser.close())
  const opened = await Promise.all(
    pages.map(async ({ name, markup, script }) => {
      const { source, key } = await newSource(deployment)
      const { page } = await visitor(t, browser)
      await page.goto(await website(t, markup(host, key), `${script(host, key)}\nwindow.sdk = sdk`))
      return { name, source, page }
    }),
  )
  const views = async () => (await collected(deployment)).length
  await until(async () => (await views()) === opened.length, 60_000, 'the page views')
  return opened
}

/** That it asked more than once, and nobody else. */
async function assertAskedAgain(program: Watched, hosts: readonly string[]): Promise<void> {
  const asked = await program.asked()
  assert.ok(asked.length > 1)
  assert.deepEqual(
    asked.filter((host) => !hosts.includes(host)),
    [],
  )
}
