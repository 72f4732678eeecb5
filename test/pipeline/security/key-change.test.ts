import assert from 'node:assert/strict'
import { test } from 'node:test'
import { someCall } from '../../support/calls/calls.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { runCommand } from '../../support/deployment/deployment-cli.ts'
import { startForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import { startReceiver } from '../../support/receivers.ts'

const [oldKey, newKey, typo] = ['0123456789abcdef', 'fedcba9876543210', '00112233445566ff'].map((part) =>
  part.repeat(4),
)
const both = `${newKey},${oldKey}`

test('the key can be changed by restarting processes in any order, and a command with a wrong key changes nothing', async (t) => {
  const deployment = await deploy(t, { SECRETS_KEY: oldKey!, PARTITIONS_CALLS: '2' })
  const crm = await startReceiver(t, { secret: 's3cret' })
  const web = await startReceiver(t, { secret: 'first' })
  await deployment.destination({ urls: [crm.url] })
  const run = async (keys: string, ...args: string[]) =>
    runCommand(t, { ...deployment, env: { ...deployment.env, SECRETS_KEY: keys } }, '', ...args)
  const done = async (keys: string, ...args: string[]) => {
    const { status, stdout, stderr } = await run(keys, ...args)
    assert.equal(status, 0, stderr)
    return stdout
  }
  const refused = async (reason: RegExp, keys: string, ...args: string[]) => {
    const { version } = deployment.settings.state
    const { status, stderr } = await run(keys, ...args)
    assert.deepEqual([status, reason.test(stderr)], [1, true], stderr)
    await deployment.settings.catchUp()
    assert.equal(deployment.settings.state.version, version)
  }
  const forwarderWith = (keys: string) => startForwarderProcess(t, deployment, { env: { SECRETS_KEY: keys } })
  let sent = 0
  /** Each gets calls of several users, signed. */
  const delivers = async (...receivers: (typeof crm)[]) => {
    const ids = Array.from({ length: 6 }, () => `m-${sent++}`)
    await deployment.produce(ids.map((messageId) => someCall({ messageId, userId: messageId })))
    for (const { requests } of receivers) {
      const arrived = () => requests.filter((request) => ids.includes(request.json().messageId as string))
      await until(() => arrived().length >= ids.length, 20_000, 'that all calls arrive')
      assert.deepEqual([...new Set(arrived().map(({ signature }) => signature))], ['valid'])
    }
  }

  const forwarders = [await forwarderWith(oldKey!), await forwarderWith(oldKey!)]
  const restart = async (index: number, keys: string) => {
    forwarders[index]!.terminate()
    await forwarders[index]!.exited
    forwarders[index] = await forwarderWith(keys)
  }
  await delivers(crm)
  const create = [
    'destinations',
    'create',
    '--id',
    'web',
    '--name',
    'Web',
    '--source',
    'shop',
    '--url',
    web.url,
  ]
  await refused(/encrypted under a key of SECRETS_KEY .*--any-key/, typo!, ...create, '--secret', 'first')

  // Commands have the new key first; no forwarder has it yet.
  await done(both, ...create, '--secret', 'first')
  await delivers(crm, web)
  await restart(0, both)
  await delivers(crm, web)
  await restart(1, both)
  assert.match(await done(both, 'secrets', 'rotate'), /2 secrets encrypted/)
  await delivers(crm, web)

  await restart(1, newKey!)
  const update = ['destinations', 'update', 'web', '--secret', 'first']
  await done(both, ...update)
  await delivers(crm, web)
  // A straggler that was never given the new key.
  await refused(/encrypted under a key of SECRETS_KEY/, oldKey!, ...update)
  await restart(0, newKey!)
  await delivers(crm, web)
  assert.ok(forwarders.every((forwarder) => forwarder.isRunning()))
})
