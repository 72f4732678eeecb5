import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { WayOutSettings } from '../../../src/adapters/webhook/ways-out.ts'
import { startChild } from '../../../src/local/child-process.ts'
import { freePort } from '../../../src/local/ports.ts'
import { needed } from '../../support/ops/tools.ts'
import { startReceiver } from '../../support/receivers.ts'
import { createAuthority } from '../../support/secured/certificates.ts'
import { temporaryFolder } from '../../support/deployment/rig.ts'
import { until } from '../../support/until.ts'
import { openTransport, send } from './transport-under-test.ts'

const { skip, path } = needed('tinyproxy')

/** Debian's tinyproxy on a port of loopback, with more lines of settings. */
async function startTinyproxy(t: TestContext, port: number, ...settings: string[]) {
  const folder = await temporaryFolder(t)
  const lines = [`Port ${port}`, 'Listen 127.0.0.1', 'Allow 127.0.0.1', 'Timeout 60', 'MaxClients 50']
  await writeFile(join(folder, 'proxy.conf'), [...lines, ...settings, ''].join('\n'))
  const logFile = join(folder, 'proxy.log')
  const child = await startChild({
    ...{ command: path('tinyproxy'), args: ['-d', '-c', 'proxy.conf'] },
    ...{ cwd: folder, env: { PATH: process.env.PATH ?? '' }, logFile },
  })
  t.after(() => child.kill())
  await until(async () => {
    if (!child.isRunning()) throw new Error(await readFile(logFile, 'utf8'))
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    const listens = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return listens
  })
  return { ...child, log: () => readFile(logFile, 'utf8') }
}

const proxyAt = (port: number, login: string | null = null): { wayOut: Partial<WayOutSettings> } => ({
  wayOut: { proxy: { url: `http://127.0.0.1:${port}`, login } },
})

test(
  'tinyproxy passes requests on, by http and https, with the login that it asks for',
  { skip },
  async (t) => {
    const authority = await createAuthority(t)
    const secure = await startReceiver(t, { tls: await authority.issue() })
    const plain = await startReceiver(t)
    const [open, closed] = [await freePort(), await freePort()]
    await startTinyproxy(t, open)
    await startTinyproxy(t, closed, 'BasicAuth me p4ssw0rd')
    for (const wayOut of [proxyAt(open), proxyAt(closed, 'me:p4ssw0rd')])
      for (const { url } of [secure, plain]) {
        const endpoint = openTransport(t, { ...wayOut, ca: authority.ca }).open({ url, headers: {} })
        for (let index = 0; index < 3; index++) {
          const outcome = await send(endpoint)
          assert.equal(outcome.kind, 'success', JSON.stringify(outcome))
        }
      }
    for (const { requests } of [secure, plain])
      assert.deepEqual(
        requests.map(({ connection }) => connection),
        [1, 1, 1, 2, 2, 2],
      )
    // Of a wrong password it says 401.
    for (const [login, status] of [
      [null, 407],
      ['me:wrong', 401],
    ] as const) {
      const endpoint = openTransport(t, proxyAt(closed, login)).open({ url: plain.url, headers: {} })
      const { kind, detail } = await send(endpoint)
      assert.equal(kind, 'proxy')
      assert.ok(detail!.startsWith(`the proxy answered CONNECT with ${status}`), detail!)
    }
    assert.equal(plain.requests.length, 6)
  },
)

test(
  'tinyproxy that refuses a port, reaches no server or is away is the outcome proxy, and serves once it is back',
  { skip },
  async (t) => {
    const receiver = await startReceiver(t)
    const [refusing, port] = [await freePort(), await freePort()]
    await startTinyproxy(t, refusing, 'ConnectPort 443')
    const proxy = await startTinyproxy(t, port)
    const outcomeOf = async (at: number, url: string) => {
      const { kind, detail } = await send(openTransport(t, proxyAt(at)).open({ url, headers: {} }))
      return [kind, detail]
    }
    assert.deepEqual(await outcomeOf(refusing, receiver.url), [
      'proxy',
      'the proxy answered CONNECT with 403',
    ])
    const nobody = `http://127.0.0.1:${await freePort()}/`
    assert.deepEqual(await outcomeOf(port, nobody), ['proxy', 'the proxy answered CONNECT with 500'])
    await proxy.kill()
    const [kind, detail] = await outcomeOf(port, receiver.url)
    assert.equal(kind, 'proxy')
    assert.match(detail!, /^the proxy could not be reached: .*ECONNREFUSED/)
    await startTinyproxy(t, port)
    assert.deepEqual(await outcomeOf(port, receiver.url), ['success', null])
  },
)
