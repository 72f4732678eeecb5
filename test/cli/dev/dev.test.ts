import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isPortFree } from '../../../src/local/ports.ts'
import { isAlive } from '../../../src/local/state-folder.ts'
import { makeCheckout, type Checkout, type Running } from '../../support/deployment/checkout.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { runHere, type CommandResult } from '../../support/deployment/program-here.ts'
import { until } from '../../support/until.ts'
import { devEnv, devReady as ready, ownPort, ownPorts } from '../../support/deployment/dev-run.ts'

async function pidOf(checkout: Checkout, server: 'kafka' | 'registry'): Promise<number> {
  const text = await readFile(join(checkout.folder, '.postrider', server, 'process.json'), 'utf8')
  return (JSON.parse(text) as { child: { pid: number } }).child.pid
}

const hello = (event: string) => JSON.stringify({ type: 'track', userId: 'me', event })

test('dev starts everything, shows verified samples once, keeps its state and leaves nothing running', async (t) => {
  const checkout = await makeCheckout(t)
  const { env, ports, allFree } = await ownPorts()

  const first = checkout.start(['dev'], env)
  await first.writes(ready)
  assert.match(first.written(), /\nAll 6 arrived, each with its signature verified\.\n/)
  for (const type of ['identify', 'track', 'page', 'screen', 'group', 'alias'])
    assert.match(first.written(), new RegExp(`\\n {2}[\\d:.]+ {2}${type} .* signature verified\\n`))
  const written = await devEnv(checkout)
  assert.equal((await stat(join(checkout.folder, '.postrider', 'dev.env'))).mode & 0o777, 0o600)
  for (const name of ['SECRETS_KEY', 'ADMIN_TOKEN', 'DEV_SHARED_SECRET']) {
    const secret = new RegExp(`^${name}=(\\w{32,})$`, 'm').exec(written)?.[1]
    assert.ok(secret && !first.written().includes(secret), `${name} is kept and not shown`)
  }

  await t.test('a command in a second terminal finds it without any setting', async () => {
    const produce = checkout.start(['produce', '--source', 'demo'], {}, hello('From elsewhere'))
    assert.equal(await produce.ended, 0, produce.written())
    await first.writes('From elsewhere')
    assert.match(first.written(), /track {5}me {9}From elsewhere {4} signature verified\n/)
    const list = checkout.start(['sources', 'list', '--json'])
    assert.equal(await list.ended, 0)
    const [, used] = /^settings of npm start: (.*) \(\.postrider\/dev\.env\)$/m.exec(list.written())!
    assert.deepEqual(used!.split(', ').sort(), [
      'ADMIN_TOKEN',
      'KAFKA_BROKERS',
      'LEDGER',
      'SCHEMA_REGISTRY_URL',
      'SECRETS_KEY',
      'WEBHOOK_ALLOWED_NETWORKS',
    ])
    const sources = list
      .stdout()
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { id: string }).id)
    assert.deepEqual(sources.toSorted(), ['demo', 'postrider'])
    const tried = checkout.start(['destinations', 'test', 'demo'])
    assert.equal(await tried.ended, 0, tried.written())
    const page = await (await fetch(`http://127.0.0.1:${env.METRICS_PORT}/metrics`)).text()
    assert.match(page, /^postrider_deliveries_total\{destination="demo",disposition="delivered"\} 7$/m)
  })

  await t.test(
    'the commands that it suggests send calls over HTTP, and the calls arrive verified',
    async () => {
      const [, url, key, body] = /\n {2}curl (\S+) -u (\w+): -d '(.*)'\n/.exec(first.written())!
      assert.equal(url, `http://127.0.0.1:${env.COLLECTOR_PORT}/v1/track`)
      assert.match(first.written(), new RegExp(`\n {2}collector +http://127.0.0.1:${env.COLLECTOR_PORT}\n`))
      // As curl sends it.
      const headers = {
        authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      }
      const answer = await fetch(url!, { method: 'POST', headers, body: body! })
      assert.equal(await answer.text(), '{"success":true}')
      await first.writes('track     me         Hello              signature verified\n')

      const [, read] = /\n {2}export ADMIN_TOKEN=\$\((.*)\)\n/.exec(first.written())!
      const token = spawnSync('sh', ['-c', read!], { cwd: checkout.folder, encoding: 'utf8' }).stdout.trim()
      const [, api] = /\n {2}curl -s (\S+) -H "Authorization: Bearer \$ADMIN_TOKEN"\n/.exec(first.written())!
      const listed = await fetch(api!, { headers: { authorization: `Bearer ${token}` } })
      assert.deepEqual(
        ((await listed.json()) as { data: { id: string }[] }).data.map(({ id }) => id),
        ['demo'],
      )

      const show = checkout.start(['sources', 'show', 'demo'])
      assert.equal(await show.ended, 0)
      assert.ok(show.written().includes(key!))

      // Where the package's own name leads to its source, as in a checkout.
      const [, script] = /\n {2}npx node --input-type=module -e "\n(.*?)\n {2}"\n/s.exec(first.written())!
      const options = { cwd: join(import.meta.dirname, '..', '..', '..'), encoding: 'utf8' } as const
      const node = spawnSync(process.execPath, ['--input-type=module', '-e', script!], options)
      assert.equal(node.stderr, '')
      await first.writes('track     me         Hello from Node    signature verified\n')
    },
  )

  await t.test('a second run in the same folder gets an error, and the first one goes on', async () => {
    const { env: others } = await ownPorts()
    const second = checkout.start(['dev'], others)
    assert.equal(await second.ended, 1)
    assert.match(second.written(), new RegExp(`runs in .* already: stop process ${first.pid} first\n`))
    assert.ok(isAlive(first.pid))
    assert.equal(await devEnv(checkout), written)
  })

  await t.test('Ctrl-C drains and leaves nothing running', async () => {
    const pids = [await pidOf(checkout, 'kafka'), await pidOf(checkout, 'registry')]
    first.signal('SIGINT')
    assert.equal(await first.ended, 0, first.written())
    assert.match(first.written(), /\nStopped\. /)
    assert.doesNotMatch(first.written(), /"level"/, 'nothing to warn of')
    assert.deepEqual(pids.filter(isAlive), [])
    assert.ok(await allFree())
  })

  await t.test('the next run continues with the same state; its receiver may use another port', async () => {
    const moved = await ownPort(ports)
    const second = checkout.start(['dev'], { ...env, DEV_RECEIVER_PORT: String(moved) })
    await second.writes(ready)
    assert.doesNotMatch(second.written(), /sample calls|signature/)
    const produce = checkout.start(['produce', '--source', 'demo'], {}, hello('Second run'))
    assert.equal(await produce.ended, 0, produce.written())
    await second.writes('Second run')
    assert.match(second.written(), /Second run .*signature verified\n/)
    assert.match(await devEnv(checkout), new RegExp(`^DEV_RECEIVER_PORT=${moved}$`, 'm'))

    // With a broker that does not answer, draining takes long.
    process.kill(await pidOf(checkout, 'kafka'), 'SIGSTOP')
    second.signal('SIGINT')
    await second.writes('Stopping')
    const askedAt = performance.now()
    let ended = false
    void second.ended.then(() => (ended = true))
    while (!ended) {
      second.signal('SIGINT')
      await Promise.race([second.ended, sleep(50)])
    }
    assert.equal(await second.ended, 130)
    assert.ok(performance.now() - askedAt < 10_000, 'a second Ctrl-C ends it at once')
    await until(allFree, 15_000, 'the end of the servers')
  })
})

test('with KAFKA_BROKERS, dev uses that Kafka and starts none', async (t) => {
  const deployment = await deploy(t)
  const { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, TOPIC_PREFIX, GROUP_ID } = deployment.env
  const given = { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, TOPIC_PREFIX, GROUP_ID } as Record<string, string>
  const checkout = await makeCheckout(t)
  const dev = checkout.start(['dev'], { ...given, COLLECTOR_PORT: '0', CONSOLE_PORT: '0', METRICS_PORT: '0' })
  await dev.writes(ready)
  assert.match(dev.written(), new RegExp(`Kafka +${KAFKA_BROKERS}, not started here\n`))
  assert.match(dev.written(), /All 6 arrived/)
  assert.ok(!existsSync(join(checkout.folder, '.postrider', 'kafka')))
  dev.signal('SIGTERM')
  assert.equal(await dev.ended, 0)

  await t.test('dev refuses a deployment whose secrets it cannot open', async (t) => {
    const elsewhere = await makeCheckout(t)
    const refused = elsewhere.start(['dev'], {
      ...given,
      COLLECTOR_PORT: '0',
      CONSOLE_PORT: '0',
      METRICS_PORT: '0',
    })
    assert.equal(await refused.ended, 1)
    assert.match(
      refused.written(),
      /\npostrider: destination "demo": .*SECRETS_KEY.*; or keep `dev` apart .* TOPIC_PREFIX and GROUP_ID/,
    )
  })
})

test('a key in the environment is used and not written to a file', async (t) => {
  const deployment = await deploy(t)
  const checkout = await makeCheckout(t)
  const { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, TOPIC_PREFIX, GROUP_ID, SECRETS_KEY } = deployment.env
  const given = { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, TOPIC_PREFIX, GROUP_ID, SECRETS_KEY }
  const dev = checkout.start(['dev'], {
    ...given,
    COLLECTOR_PORT: '0',
    CONSOLE_PORT: '0',
    METRICS_PORT: '0',
  } as Record<string, string>)
  await dev.writes(ready)
  assert.match(dev.written(), /note: set SECRETS_KEY in other terminals too/)
  const written = await devEnv(checkout)
  assert.ok(!written.includes(SECRETS_KEY!))
  assert.doesNotMatch(written, /^SECRETS_KEY=/m)
  dev.signal('SIGINT')
  assert.equal(await dev.ended, 0)
})

async function blockedPort(t: TestContext): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return (server.address() as { port: number }).port
}

test('a port that is in use is reported with what to do, and nothing is left running', async (t) => {
  const blocked = String(await blockedPort(t))
  const checkout = await makeCheckout(t)
  const { env, ports } = await ownPorts()
  const refused = checkout.start(['dev'], { ...env, DEV_KAFKA_PORT: blocked })
  assert.equal(await refused.ended, 1)
  assert.match(
    refused.written(),
    /^postrider: port \d+ is taken: .*, or give another port with --kafka-port \(DEV_KAFKA_PORT\)$/m,
  )
  // By then its servers run.
  const late = checkout.start(['dev'], { ...env, DEV_RECEIVER_PORT: blocked })
  assert.equal(await late.ended, 1)
  assert.match(late.written(), /^postrider: port \d+ of 127\.0\.0\.1 is taken: give another one$/m)
  for (const port of ports) assert.ok(await isPortFree(port))
  for (const server of ['kafka', 'registry'] as const)
    await assert.rejects(pidOf(checkout, server), { code: 'ENOENT' })

  const { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, TOPIC_PREFIX, GROUP_ID } = (await deploy(t)).env
  const given = { KAFKA_BROKERS, SCHEMA_REGISTRY_URL, TOPIC_PREFIX, GROUP_ID } as Record<string, string>
  for (const variable of ['METRICS_PORT', 'COLLECTOR_PORT']) {
    const dev = checkout.start(['dev'], { ...env, ...given, [variable]: blocked })
    assert.equal(await dev.ended, 1, variable)
    assert.match(
      dev.written(),
      new RegExp(`^postrider: ${variable} is \\d+, a port that is taken; give another one`, 'm'),
    )
    for (const port of ports) assert.ok(await isPortFree(port))
  }
})

async function ended(run: Running): Promise<Pick<CommandResult, 'status' | 'stderr'>> {
  return { status: await run.ended, stderr: run.written() }
}

test('wrong usage and a missing Java get one line and leave nothing behind', async (t) => {
  const checkout = await makeCheckout(t)
  const cases: [code: number, line: RegExp, env: Record<string, string>, args?: string[]][] = [
    [
      2,
      /^postrider: --kafka-port \(DEV_KAFKA_PORT\) is "x"; it takes a port from 1 to 65535$/,
      { DEV_KAFKA_PORT: 'x' },
    ],
    [2, /^postrider: --receiver-port .* is "0"/, {}, ['--receiver-port', '0']],
    [2, /^postrider: --brokers \(DEV_BROKERS\) is "2"; it takes 1 or 3$/, { DEV_BROKERS: '2' }],
    [
      2,
      /^postrider: --registry-port is 9094, and the brokers take 9092, 9093, 9094$/,
      {},
      ['--brokers', '3', '--registry-port', '9094'],
    ],
    [
      2,
      /^postrider: --kafka-port is 65534, and three brokers take the next two ports as well$/,
      {},
      ['--brokers', '3', '--kafka-port', '65534'],
    ],
    [
      2,
      /^postrider: --brokers \(DEV_BROKERS\) is for a local Kafka, and KAFKA_BROKERS names yours: /,
      { KAFKA_BROKERS: 'x:1', SCHEMA_REGISTRY_URL: 'http://x' },
      ['--brokers', '3'],
    ],
    [
      2,
      /^postrider: --kafka-port and --registry-port are both 9/,
      {},
      ['--kafka-port', '9', '--registry-port', '9'],
    ],
    [
      2,
      /^postrider: SCHEMA_REGISTRY_URL is set and KAFKA_BROKERS is not/,
      { SCHEMA_REGISTRY_URL: 'http://x' },
    ],
    [2, /^postrider: RETRY_WINDOW is "5h"/, { RETRY_WINDOW: '5h' }],
    [
      1,
      /^postrider: Java is not installed, .*docker compose up.*KAFKA_BROKERS/,
      { PATH: '/nowhere', JAVA_HOME: '' },
    ],
  ]
  for (const [code, line, env, args = []] of cases) {
    // These are looked up in the environment of the process.
    const needsProcess = Object.keys(env).some((name) => name === 'PATH' || name.startsWith('DEV_'))
    const { status, stderr } = needsProcess
      ? await ended(checkout.start(['dev', ...args], env))
      : await runHere(t, ['dev', ...args], { env, cwd: checkout.folder })
    assert.equal(status, code, stderr)
    assert.match(stderr.split('\n').at(-2)!, line)
    assert.ok(!existsSync(join(checkout.folder, '.postrider', 'dev.env')))
  }
})

test('outside of a checkout, dev says where it can run', () => {
  const entry = join(import.meta.dirname, '..', '..', '..', 'src', 'main.ts')
  const { status, stderr } = spawnSync(process.execPath, [entry, 'dev'], { cwd: tmpdir(), encoding: 'utf8' })
  assert.equal(status, 2)
  assert.match(stderr, /^postrider: .* does not lie in a checkout of Postrider/)
})
