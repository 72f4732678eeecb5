import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { test, type TestContext } from 'node:test'
import type { AuditReport } from '../../../src/core/ledger/audit-report.ts'
import { subscribe } from '../../support/deployment/operational-events.ts'
import { runCommand, startCommand } from '../../support/deployment/deployment-cli.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { NumberedCalls } from '../../support/calls/numbered-calls.ts'
import { startReceiver } from '../../support/receivers.ts'

const run = (t: TestContext, deployment: Deployment, ...args: string[]) =>
  runCommand(t, deployment, '', 'audit', ...args)

test('audit says where it begins and what it found, and exits with 1 if anything is missing', async (t) => {
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const { admin, config, topics } = deployment
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment)
  await calls.produce(30)
  const first = await deployment.forwarder()
  await deployment.drained(60_000)
  await first.stop()

  await t.test('a clean ledger: a readable page, exit code 0', async (t) => {
    const { status, stdout, stderr } = await run(t, deployment)
    assert.equal(status, 0, stderr)
    const place = `${topics.calls}/0`.replaceAll('.', '\\.')
    assert.match(stdout, new RegExp(`^${place} +20[-0-9]+T[0-9:.]+Z +0 +30 +30 +0 +\\d+$`, 'm'))
    assert.match(stdout, /^crm +30 +0 +30 +0 +0 +0 +0 +0 +0$/m)
    assert.match(stdout, /^everything is accounted for \(read: 30 calls, /m)
  })

  await t.test('--since and --until audit only what was committed between them', async (t) => {
    const middle = Date.now()
    await calls.produce(12)
    const second = await deployment.forwarder()
    await deployment.drained(60_000)
    await second.stop()
    const time = new Date(middle).toISOString()
    const audited = async (...args: string[]) => {
      const { status, stdout, stderr } = await run(t, deployment, '--json', ...args)
      assert.equal(status, 0, stderr)
      const { partitions, destinations, read } = JSON.parse(stdout) as AuditReport
      const { from, to, since, records } = partitions.find(({ topic }) => topic === topics.calls)!
      return {
        from,
        to,
        records,
        later: since! >= middle,
        planned: destinations[0]!.planned,
        calls: read.calls,
      }
    }
    const after = { from: 30, to: 42, records: 12, later: true, planned: 12, calls: 12 }
    assert.deepEqual(await audited('--since', time), after)
    const before = { from: 0, to: 30, records: 30, later: false, planned: 30, calls: 30 }
    assert.deepEqual(await audited('--until', time), before)
  })

  await t.test(
    'a gap: a line with topic, partition and offsets, exit code 1, also with --follow',
    async (t) => {
      await calls.produce(8)
      const skip = [{ partition: 0, offset: '47' }]
      await admin.setOffsets({ groupId: config.groupId, topic: topics.calls, partitions: skip })
      const { status, stdout } = await run(t, deployment)
      assert.equal(status, 1)
      assert.match(
        stdout,
        new RegExp(`^GAP ${topics.calls.replaceAll('.', '\\.')}/0 offsets 42\\.\\.46: `, 'm'),
      )
      assert.match(stdout, /^NOT everything is accounted for: 1 fault /m)
      const { process: following } = startCommand(t, deployment, 'audit', '--follow', '--json')
      const lines: string[] = []
      for await (const line of createInterface(following.stdout)) {
        lines.push(line)
        if (lines.length === 2) following.kill('SIGTERM')
      }
      if (following.exitCode === null) await once(following, 'exit')
      assert.equal(following.exitCode, 1)
      for (const line of lines) assert.equal((JSON.parse(line) as AuditReport).faults.length, 1)

      // Whoever has subscribed learns of it: under one id, however often it is found.
      await subscribe(t, deployment)
      for (let round = 0; round < 2; round++) assert.equal((await run(t, deployment)).status, 1)
      const records = await deployment.read(topics.calls)
      const sent = (
        await Promise.all(records.map(({ value }) => deployment.codecs.calls.decode(value)))
      ).filter(({ event }) => event === 'Audit Failed')
      assert.equal(sent.length, 2)
      assert.equal(new Set(sent.map(({ messageId }) => messageId)).size, 1)
    },
  )

  await t.test('a wrong flag is reported in one line, with exit code 2', async (t) => {
    const { status, stdout, stderr } = await run(t, deployment, '--since', 'yesterday')
    assert.deepEqual([status, stdout, stderr.trim().split('\n').length], [2, '', 1])
    assert.match(stderr, /--since.*yesterday/)
  })
})

test('an audit that is stopped before its verdict says so, and does not exit as one that has proved anything', async (t) => {
  const deployment = await deploy(t)
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  const silent = createServer(() => resolve())
  const sockets = new Set<Socket>()
  silent.on('connection', (socket) => sockets.add(socket.on('error', () => {})))
  await new Promise<void>((listens) => silent.listen(0, '127.0.0.1', listens))
  t.after(() => silent.close())
  const { port } = silent.address() as AddressInfo
  const env = { ...deployment.env, KAFKA_BROKERS: `127.0.0.1:${port}` }
  const { process: stopped } = startCommand(t, { ...deployment, env }, 'audit')
  let said = ''
  stopped.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  await asked
  stopped.kill('SIGTERM')
  silent.close()
  for (const socket of sockets) socket.destroy()
  assert.deepEqual(await once(stopped, 'close'), [1, null])
  assert.match(said, /the audit was stopped before its verdict: nothing is proved/)
})
