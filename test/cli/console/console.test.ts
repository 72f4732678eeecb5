import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeCheckout } from '../../support/deployment/checkout.ts'
import { adminToken, startConsole } from '../../support/consoles.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { codeBlocks } from '../../support/docs.ts'
import { startReceiver } from '../../support/receivers.ts'
import { temporaryFolder } from '../../support/deployment/rig.ts'

test('the console does not start without a token, and the error says how to create one', async (t) => {
  const deployment = await deploy(t)
  const { start } = await makeCheckout(t)
  for (const args of [['console'], ['run', 'collector', 'console']]) {
    const run = start(args, deployment.env)
    assert.equal(await run.ended, 2, run.written())
    assert.match(run.written(), /^postrider: ADMIN_TOKEN is not set, .*openssl rand -hex 32/m)
  }
})

test('all parts run in one process; SIGTERM finishes requests first, and the token is in no log line', async (t) => {
  const deployment = await deploy(t)
  const { start } = await makeCheckout(t)
  const env = {
    ...deployment.env,
    ADMIN_TOKEN: adminToken,
    COLLECTOR_PORT: '0',
    CONSOLE_PORT: '0',
    STORE_PATH: await temporaryFolder(t),
    LOG_LEVEL: 'debug',
  }
  const run = start(['run', 'collector', 'forwarder', 'console'], env)
  await run.writes('admin API at http://localhost:')
  const port = (what: string) =>
    Number(new RegExp(`${what} at http://localhost:(\\d+)`).exec(run.written())![1])
  const ready = async () => (await fetch(`http://127.0.0.1:${port('metrics')}/readyz`)).status === 200
  await until(ready, 30_000)
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
  const url = `http://127.0.0.1:${port('admin API')}/api/v1/sources`

  // Unless configured, it listens on no other address: this one is of the same machine.
  await assert.rejects(fetch(url.replace('127.0.0.1', '127.0.0.2'), { headers }))

  // Half of it is sent before the signal, the other half after.
  const body = '{"id":"shop","name":"Shop"}'
  const slow = request(url, { method: 'POST', headers: { ...headers, 'content-length': body.length } })
  const answered = once(slow, 'response')
  await new Promise((resolve) => slow.write(body.slice(0, 10), resolve))
  const socket = slow.socket!
  assert.equal((await fetch(url, { headers: { ...headers, authorization: 'Bearer wrong' } })).status, 401)
  run.signal('SIGTERM')
  slow.end(body.slice(10))
  const [answer] = (await answered) as [{ statusCode: number; headers: Record<string, string> }]
  assert.equal(answer.statusCode, 201)
  await once(socket.resume(), 'close')
  assert.equal(await run.ended, 0, run.written())
  await deployment.settings.catchUp()
  assert.ok(deployment.settings.state.sources.has('shop'))
  assert.match(run.written(), /"operation":"createSource"/)
  assert.ok(!run.written().includes(adminToken))
  assert.ok(!run.written().includes('Bearer'))
})

/** Every address and port that a process listens at. Others may listen at the same port of another address. */
function listeningAt(pid: number): string[] {
  const folder = `/proc/${pid}/fd`
  const targets = readdirSync(folder).flatMap((fd) => {
    const path = join(folder, fd)
    return lstatSync(path, { throwIfNoEntry: false }) ? [readlinkSync(path)] : []
  })
  return ['tcp', 'tcp6'].flatMap((family) =>
    readFileSync(`/proc/${pid}/net/${family}`, 'utf8')
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      // proc(5): the local address, the state (0A: listening), and the inode.
      .filter(([, , , state, , , , , , inode]) => state === '0A' && targets.includes(`socket:[${inode}]`))
      .map(([, local]) => {
        const [address, port] = local!.split(':') as [string, string]
        // Of 8 digits it is an IPv4 address, its bytes turned around.
        const shown = address.length === 8 ? [...Buffer.from(address, 'hex')].toReversed().join('.') : address
        return `${shown}:${parseInt(port, 16)}`
      }),
  )
}

test('each server listens only at its configured address', async (t) => {
  if (process.platform !== 'linux') return t.skip('elsewhere this machine has one address of its own alone')
  const deployment = await deploy(t)
  const { start } = await makeCheckout(t)
  const servers = { collecting: '127.0.0.2', 'admin API': '127.0.0.3', metrics: '127.0.0.4' }
  const places: string[] = []
  const run = start(['run', 'collector', 'console'], {
    ...deployment.env,
    ...{ COLLECTOR_HOST: servers.collecting, COLLECTOR_PORT: '0' },
    ...{ CONSOLE_HOST: servers['admin API'], CONSOLE_PORT: '0', ADMIN_TOKEN: adminToken },
    METRICS_HOST: servers.metrics,
    STORE_PATH: await temporaryFolder(t),
    LOG_LEVEL: 'info',
  })
  for (const [what, host] of Object.entries(servers)) {
    await run.writes(`${what} at http://${host}:`)
    const [, url] = new RegExp(`${what} at (http://${host}:\\d+)`).exec(run.written())!
    await fetch(url!)
    places.push(new URL(url!).host)
  }
  assert.deepEqual(listeningAt(run.pid).toSorted(), places.toSorted())
  run.signal('SIGTERM')
  assert.equal(await run.ended, 0, run.written())
})

test('the requests in docs/admin-api.md have the documented effect', async (t) => {
  if (spawnSync('curl', ['--version']).error) return t.skip('there is no curl')
  const deployment = await deploy(t)
  const console = await startConsole(deployment)
  const receiver = await startReceiver(t, { secret: 's3cret' })
  const script = codeBlocks('sh', ['docs/admin-api.md']).find((code) => code.startsWith('api() '))!
  assert.ok(script.includes('http://127.0.0.1:4000/hooks'))
  const child = spawn('sh', ['-e', '-c', script.replace('http://127.0.0.1:4000/hooks', receiver.url)], {
    env: { PATH: process.env.PATH, API: `${console.url}/api/v1`, ADMIN_TOKEN: adminToken },
  })
  let written = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (written += text))
  const [status] = (await once(child, 'close')) as [number]
  assert.equal(status, 0, written)
  const [sample] = receiver.requests
  assert.equal(sample?.signature, 'valid')
  assert.equal(sample.headers['x-team'], 'blue')
  assert.match(written, /"succeeded":true/)
  assert.match(written, /"entered":2,/)
  await deployment.settings.catchUp()
  const destination = deployment.settings.state.destinations.get('web-crm')!
  assert.deepEqual([destination.enabled, destination.options.types], [false, ['identify', 'track']])
})
