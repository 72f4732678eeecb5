// Real consoles that are killed by SIGKILL right at a write to Kafka, one after another, while a replay is sent.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { auditOf } from '../../support/audit.ts'
import { withoutScheduled } from '../../support/calls/numbered-calls.ts'
import { runCommand } from '../../support/deployment/deployment-cli.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { startReceiver } from '../../support/receivers.ts'
import { startConsoleProcess } from '../../support/replay/console-process.ts'
import { assertInOrder, callsOfUsers, idsOf, keysOf } from '../../support/replay/replays.ts'
import { until } from '../../support/until.ts'

/** The replay is started, sent in batches of 500, noted and finished. Each console is killed at one of these. */
const kills = [
  'settings 1 after',
  'append 1 before',
  'append 2 after',
  'commit 1 before',
  'commit 1 after',
  'settings 1 before',
]

test('with short sessions', async (t) => {
  await t.test(
    'consoles killed at each step of a resume, one after another, lose nothing, repeat what was not noted, and end it once',
    (t) => killAtEachStep(t),
  )
  await t.test(
    'consoles killed at each step of a replay of dead letters deliver every one, each delivery by its first failure, and end it once',
    (t) => killAmongDeadLetters(t),
  )
})

/** Its membership outlasts what consoles take of the machine: where it does not, calls in flight may come twice. */
const startForwarder = (deployment: Deployment) =>
  deployment.forwarder({ config: { ...deployment.config, sessionTimeoutMs: 30_000 } })

async function killConsole(t: TestContext, deployment: Deployment, at: string): Promise<void> {
  const console = await startConsoleProcess(t, deployment, at)
  let signal: NodeJS.Signals | 'none' | null = null
  void console.ended.then((given) => (signal = given ?? 'none'))
  await until(() => signal !== null, 60_000, `that the console is killed at ${at}: ${console.text()}`)
  assert.equal(signal, 'SIGKILL', console.text())
}

async function killAtEachStep(t: TestContext): Promise<void> {
  const deployment = await deploy(t, { SESSION_TIMEOUT: '1500ms' })
  const { settings, topics, read } = deployment
  const receiver = await startReceiver(t, { secret: 's3cret' })
  await deployment.destination({ id: 'crm', urls: [receiver.url], secret: 's3cret' })
  await settings.execute({ type: 'pause_destination', id: 'crm', pauseId: 'p1', at: Date.now(), until: null })
  await startForwarder(deployment)
  const calls = callsOfUsers(1_200, 12)
  await deployment.produce(calls)
  await deployment.drained()
  await settings.execute({ type: 'resume_destination', id: 'crm', pauseId: 'p1', at: Date.now() })

  for (const at of kills) await killConsole(t, deployment, at)
  const jobOf = () => settings.state.replays.get('held-p1')
  assert.equal(jobOf()?.state, 'running')
  await startConsoleProcess(t, deployment, null)
  await until(() => jobOf()?.state === 'finished', 60_000, 'the end of the replay')

  const written = (await read(topics.retry('replay'))).length
  await receiver.waitFor(written, 60_000)
  const repeated = written - calls.length
  t.diagnostic(`${repeated} came again`)
  // Two that had sent something were killed before they noted it; each batch has at most 500.
  assert.ok(repeated > 0 && repeated <= 2 * calls.length, `${repeated} were sent again`)
  const firsts = [
    ...new Map(receiver.requests.toReversed().map((each) => [each.json().messageId, each])).values(),
  ]
  assert.deepEqual(new Set(idsOf(firsts)), new Set(calls.map(({ messageId }) => messageId)))
  assertInOrder(await withoutScheduled(deployment, firsts.reverse()))
  assert.ok(receiver.requests.every(({ signature }) => signature === 'valid'))
  assert.ok(keysOf(receiver).every((key) => key.endsWith(':crm')))
  const { totals } = jobOf()!
  assert.deepEqual([totals!.held, totals!.looked], [1_200, 1_200])

  // A later call shows that nothing more comes.
  await deployment.produce(callsOfUsers(1, 1, 'later'))
  await receiver.waitFor(written + 1, 30_000)
  await deployment.drained()
  assert.equal(receiver.requests.length, written + 1)
  const report = await auditOf(deployment)
  assert.ok(report.ok, JSON.stringify(report))
}

async function killAmongDeadLetters(t: TestContext): Promise<void> {
  const deployment = await deploy(t, { SESSION_TIMEOUT: '1500ms' })
  const { settings, topics, read } = deployment
  const receiver = await startReceiver(t)
  await deployment.destination({ id: 'crm', urls: [receiver.url] })
  receiver.answer({ status: 400 })
  await startForwarder(deployment)
  const calls = callsOfUsers(1_200, 12)
  await deployment.produce(calls)
  const unreadable = Array.from({ length: 5 }, (_, n) => ({ key: `u${n}`, value: `no Avro ${n}` }))
  await deployment.producer.send({ topic: topics.calls, messages: unreadable })
  await receiver.waitFor(1_200, 60_000)
  const thereAre = (count: number) =>
    until(async () => (await deployment.deadLetters()).length === count, 60_000, `${count} dead letters`)
  await thereAre(1_205)
  const run = async (...args: string[]): Promise<string> => {
    const done = await runCommand(t, deployment, '', 'dead-letters', 'replay', ...args)
    assert.equal(done.status, 0, done.stderr)
    return done.stdout
  }
  await run(...calls.slice(0, 20).map(({ messageId }) => `${messageId}:crm`))
  await thereAre(1_225)
  receiver.answer({})
  const before = receiver.requests.length
  const sentBefore = (await read(topics.retry('replay'))).length
  const [id] = /replay-\S+/.exec(await run('--all', '--detach'))!

  for (const at of kills.slice(1)) await killConsole(t, deployment, at)
  const jobOf = () => settings.state.replays.get(id)
  assert.equal(jobOf()?.state, 'running')
  await startConsoleProcess(t, deployment, null)
  await until(() => jobOf()?.state === 'finished', 60_000, 'the end of the replay')

  const written = (await read(topics.retry('replay'))).length - sentBefore
  await receiver.waitFor(before + written, 60_000)
  const repeated = written - calls.length
  t.diagnostic(`${repeated} came again`)
  assert.ok(repeated > 0 && repeated <= 2 * calls.length, `${repeated} were sent again`)
  const delivered = receiver.requests.slice(before)
  assert.deepEqual(new Set(idsOf(delivered)), new Set(calls.map(({ messageId }) => messageId)))
  assert.deepEqual(new Set(keysOf(receiver)), new Set(calls.map(({ messageId }) => `${messageId}:crm`)))
  const { failed, raw, repeated: left, looked } = jobOf()!.totals!
  assert.deepEqual([failed, raw, left, looked], [1_200, 5, 20, 1_225])

  // A later call shows that nothing more comes.
  await deployment.produce(callsOfUsers(1, 1, 'later'))
  await receiver.waitFor(before + written + 1, 30_000)
  await deployment.drained()
  assert.equal(receiver.requests.length, before + written + 1)
  // The records came back as they were, and are dead letters once more.
  const again = (await deployment.deadLetters()).filter(({ reason }) => reason === 'undecodable')
  assert.ok(again.length >= 10, `${again.length}`)
  assert.equal(new Set(again.map(({ raw }) => Buffer.from(raw!).toString())).size, 5)
  const report = await auditOf(deployment)
  assert.ok(report.ok, JSON.stringify(report))
}
