// A replay of the one call that is named, by the API and by the command.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startConsole } from '../../support/consoles.ts'
import { runCommand } from '../../support/deployment/deployment-cli.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { temporaryFolder } from '../../support/deployment/rig.ts'
import { startReceiver } from '../../support/receivers.ts'
import { callsOfUsers, keysOf, replayIn } from '../../support/replay/replays.ts'

test('a replay of one call sends that call alone, under its own id only where no receiver took it', async (t) => {
  const deployment = await deploy(t, { STORE_PATH: await temporaryFolder(t) })
  const [taking, refusing, young] = [await startReceiver(t), await startReceiver(t), await startReceiver(t)]
  refusing.answer({ status: 404 })
  await deployment.destination({ id: 'taking', urls: [taking.url] })
  await deployment.destination({ id: 'refusing', urls: [refusing.url] })
  await deployment.forwarder()
  await deployment.produce(callsOfUsers(40, 10))
  await Promise.all([taking.waitFor(40, 30_000), refusing.waitFor(40, 30_000)])
  await deployment.drained()
  await deployment.destination({ id: 'young', urls: [young.url] })
  const console = await startConsole(deployment)
  const replay = async (terms: object) => {
    const { id } = await console.ok(201, 'POST', '/replays', terms)
    return replayIn(console, String(id), 'finished')
  }

  refusing.answer({ status: 200 })
  const dry = await console.ok(200, 'POST', '/replays/dry-run', {
    destinationId: 'refusing',
    messageId: 'm7',
  })
  assert.deepEqual(dry.counts, { held: 0, skipped: 0, failed: 1, delivered: 0, raw: 0 })
  const failed = await replay({ destinationId: 'refusing', messageId: 'm7' })
  assert.deepEqual([failed.sent, failed.totals.failed], [1, 1])
  await refusing.waitFor(41, 30_000)
  assert.equal(keysOf(refusing).at(-1), 'm7:refusing')

  const skipped = await replay({ destinationId: 'young', messageId: 'm7' })
  assert.deepEqual([skipped.sent, skipped.totals.skipped], [1, 1])
  await young.waitFor(1, 30_000)
  assert.deepEqual(keysOf(young), ['m7:young'])

  const delivered = await replay({ destinationId: 'taking', messageId: 'm7' })
  assert.deepEqual([delivered.sent, delivered.totals.delivered], [1, 1])
  await taking.waitFor(41, 30_000)
  assert.equal(keysOf(taking).at(-1), `m7:taking:${delivered.id}`)
  assert.equal(taking.requests.at(-1)!.json().messageId, 'm7')
  const unwanted = await replay({ destinationId: 'taking', messageId: 'm8', only: ['failed'] })
  assert.equal(unwanted.sent, 0)

  const run = (...args: string[]) =>
    runCommand(t, deployment, '', 'replay', '--destination', 'young', ...args)
  const done = await run('--message', 'm8')
  assert.equal(done.status, 0, done.stderr)
  assert.match(done.stdout, /\ncall +m8\n/)
  assert.match(done.stdout, /\nsent +1 \(held 0, skipped 1, failed 0, delivered 0\)\n/)
  await young.waitFor(2, 30_000)
  assert.deepEqual(keysOf(young), ['m7:young', 'm8:young'])

  const unknown = await console.call('POST', '/replays', {
    json: { destinationId: 'young', messageId: 'none' },
  })
  assert.deepEqual([unknown.status, unknown.body.code], [404, 'not_found'])
  const none = await run('--message', 'none')
  assert.equal(none.status, 1)
  assert.match(none.stderr, /no call with messageId "none" lies in Kafka/)
  for (const [args, message] of [
    [[], /give --since, or --message/],
    [['--message', 'm8', '--until', '1h'], /--until means nothing without --since/],
  ] as const) {
    const wrong = await run(...args)
    assert.equal(wrong.status, 2, wrong.stderr)
    assert.match(wrong.stderr, message)
  }
  const fieldOf = async (json: object) => {
    const { status, body } = await console.call('POST', '/replays', { json })
    return [status, (body.fields as { field: string }[]).map(({ field }) => field).join()]
  }
  assert.deepEqual(await fieldOf({ destinationId: 'young' }), [400, 'since'])
  assert.deepEqual(await fieldOf({ destinationId: 'young', messageId: 'm8', until: '1h' }), [400, 'until'])
})
