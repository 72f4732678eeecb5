// The numbers of the statistics are those of the audit and of the receivers, also when processes are killed.
import assert from 'node:assert/strict'
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test, type TestContext } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { AuditReport } from '../../../src/core/ledger/audit-report.ts'
import type { OptionsEdit } from '../../../src/core/settings/destination-options.ts'
import { someCall } from '../../support/calls/calls.ts'
import { NumberedCalls, placeOf, unevenly } from '../../support/calls/numbered-calls.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { startForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import { temporaryFolder } from '../../support/deployment/rig.ts'
import { ledgerEvents, ledgerSums, settledAudit, sumOfValues, type LedgerSums } from '../../support/audit.ts'
import { startReceiver, type ReceivedRequest, type Receiver } from '../../support/receivers.ts'
import { countedIn, ever, statisticsOf, sumsOf } from '../../support/statistics/counted.ts'
import { until } from '../../support/until.ts'

/** The equation of the audit, by the statistics' numbers. */
async function assertAddsUp(deployment: Deployment, folder: string, report: AuditReport): Promise<void> {
  assert.deepEqual(report.faults, [])
  assert.ok(report.ok, JSON.stringify(report.destinations))
  const statistics = await statisticsOf(deployment, folder)
  try {
    const sums = statistics.database.sums('destination', ever('hour'))
    assert.deepEqual(statistics.database.sums('destination', ever('minute')), sums)
    const counted = [...sums].map(([id, counts]) => ({
      destinationId: id === '' ? null : id,
      planned: counts.planned ?? 0,
      delivered: counts.delivered ?? 0,
      dead: counts.deadLettered ?? 0,
      skipped: counts.skipped ?? 0,
      erased: counts.erased ?? 0,
    }))
    const byId = (a: { destinationId: string | null }, b: { destinationId: string | null }) =>
      (a.destinationId ?? '') < (b.destinationId ?? '') ? -1 : 1
    assert.deepEqual(
      counted.sort(byId),
      report.destinations
        .map(({ destinationId, planned, delivered, dead, skipped, erased }) => ({
          ...{ destinationId, planned, delivered, dead, skipped, erased },
        }))
        .sort(byId),
    )
  } finally {
    await statistics.close()
  }
}

/** Fails once, then works; other calls never do. */
function moody(receiver: Receiver): void {
  const seen = new Set<string>()
  const slowly = unevenly(60)
  receiver.answer((request: ReceivedRequest) => {
    const place = placeOf(request)
    const isAgain = seen.has(place)
    seen.add(place)
    const offset = Number(place.split('/')[1])
    if (offset % 7 === 0) return { ...slowly(request), status: 404 }
    return { ...slowly(request), status: !isAgain && offset % 3 === 0 ? 503 : 200 }
  })
}

async function begin(t: TestContext) {
  const [one, other] = [await startReceiver(t), await startReceiver(t)]
  moody(one)
  other.answer({ status: 404 })
  const deployment = await deploy(t, {
    SESSION_TIMEOUT: '1500ms',
    PARTITIONS_DELIVERIES: '3',
  })
  await deployment.destination({ id: 'crm', urls: [one.url] })
  await deployment.destination({ id: 'half', urls: [other.url, `${one.url}/half`] })
  await deployment.destination({ id: 'picky', urls: [one.url] })
  const options: OptionsEdit = { types: ['identify'] }
  await deployment.settings.execute({ type: 'update_destination', id: 'picky', options })
  const calls = new NumberedCalls(deployment)
  await calls.produce(300)
  await deployment.produce([someCall({ sourceId: 'nobody', messageId: 'a' })])
  return { deployment, one, other, calls }
}

/** A process that keeps the file up with the ledger, as a console does. */
async function startFolding(t: TestContext, deployment: Deployment, folder: string): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, '../../support/statistics/process.ts'), [folder], {
    env: { ...process.env, ...deployment.env },
  })
  t.after(() => child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}

/** How often something was saved in the file so far. */
async function savedIn(folder: string): Promise<number> {
  const file = (await readdir(folder)).find((name) => name.endsWith('.sqlite'))!
  const database = new DatabaseSync(join(folder, file), { readOnly: true })
  try {
    return Number(database.prepare('SELECT revision FROM state').get()!.revision)
  } finally {
    database.close()
  }
}

async function killed(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
}

test('with short sessions', async (t) => {
  await t.test(
    'with failures, retries, skips, dead letters and a killed forwarder, statistics add up with the audit and the receivers',
    async (t) => {
      const { deployment, one, other } = await begin(t)
      const folder = await temporaryFolder(t)
      const first = await startForwarderProcess(t, deployment)
      await one.waitFor(700, 60_000)
      // The first call of a partition is refused, the next two are not.
      const isCommitted = async () =>
        (await deployment.committed(deployment.topics.calls)).some((offset) => offset > 2)
      await until(isCommitted, 30_000, 'a commit')
      await first.kill()
      // Up to here, and then to the end: what was open when it stopped is counted then.
      const early = await countedIn(deployment, folder)
      assert.ok((early.crm?.counts.delivered ?? 0) > 0)
      await startForwarderProcess(t, deployment)
      const report = await settledAudit(deployment)

      let ledger: LedgerSums = {}
      let counted: LedgerSums = {}
      // The last tallies are to be confirmed, in each tier by itself; and a late answer may make one more.
      await until(
        async () => {
          ledger = await ledgerSums(deployment)
          counted = await countedIn(deployment, folder)
          return isDeepStrictEqual(counted, ledger)
        },
        30_000,
        'that all is counted',
      ).catch(() => {})
      assert.deepEqual(counted, ledger)
      await assertAddsUp(deployment, folder, report)
      assert.ok(counted.crm!.counts.retried! > 0 && counted.crm!.dead.rejected! > 0)
      assert.equal(counted.picky!.skipped.not_chosen, 1_200)
      // Requests of the killed process whose records were worked on again are beyond the counts; there are no others.
      const attempts = (url: 'u1' | 'u2', id: string) => sumOfValues(counted[id]!.attempts[url]!)
      const beyond = other.requests.length - attempts('u1', 'half')
      assert.ok(beyond >= 0 && beyond <= 600, `${beyond}`)
      const ofOne = one.requests.length - attempts('u1', 'crm') - attempts('u2', 'half')
      assert.ok(ofOne >= 0 && ofOne <= 1_200, `${ofOne}`)
      const listed = (await ledgerEvents(deployment)).filter(({ type }) => type === 'attempt_failed').length
      const statistics = await statisticsOf(deployment, folder)
      const anything = {
        destinationId: null,
        urlId: null,
        outcome: null,
        status: null,
        since: null,
        until: null,
      }
      const page = statistics.database.attempts({ ...anything, messageIds: null }, null, 100_000)
      await statistics.close()
      assert.equal(page.attempts.length, listed)

      await t.test('deleted and rebuilt from Kafka, they are the same', async () => {
        for (const file of await readdir(folder)) await rm(join(folder, file))
        assert.deepEqual(await countedIn(deployment, folder), ledger)
        await assertAddsUp(deployment, folder, report)
      })
    },
  )

  await t.test(
    'a process that is killed while it folds neither loses a count nor adds one twice',
    async (t) => {
      const { deployment, one, calls } = await begin(t)
      const folder = await temporaryFolder(t)
      const forwarder = await startForwarderProcess(t, deployment)
      for (let round = 0; round < 3; round++) {
        const child = await startFolding(t, deployment, folder)
        const arrived = one.requests.length
        await calls.produce(50)
        await one.waitFor(arrived + 100, 60_000)
        // It is killed in the middle: some of it is saved, and more comes.
        const saved = await savedIn(folder)
        await until(async () => (await savedIn(folder)) >= saved + 2, 30_000, 'that it saves')
        await calls.produce(50)
        await killed(child)
      }
      const child = await startFolding(t, deployment, folder)
      const report = await settledAudit(deployment)
      const statistics = await statisticsOf(deployment, folder)
      const counted = () => sumsOf(statistics.database.sums('destination', ever('hour')))
      let ledger: LedgerSums = {}
      await until(
        async () => {
          ledger = await ledgerSums(deployment)
          return isDeepStrictEqual(counted(), ledger)
        },
        30_000,
        'that everything is counted',
      ).catch(() => {})
      assert.deepEqual(counted(), ledger)
      await statistics.close()
      await killed(child)
      await assertAddsUp(deployment, folder, report)
      forwarder.terminate()
      await forwarder.exited
    },
  )
})
