// The proxies of docs/http-api.md, in front of a collector and a console.
import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { loadConfig } from '../../src/config/config.ts'
import { startChild } from '../../src/local/child-process.ts'
import { freePort } from '../../src/local/ports.ts'
import { startCollector, withSource, writeKey } from '../support/calls/collectors.ts'
import { adminToken, startConsole } from '../support/consoles.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'
import { codeBlocks } from '../support/docs.ts'
import { needed } from '../support/ops/tools.ts'
import { createAuthority } from '../support/secured/certificates.ts'
import { until } from '../support/until.ts'

const page = 'docs/http-api.md'
const collectorName = 'collector.example.com'
const consoleName = 'console.example.com'

/** The settings of the page, which every shell understands. */
const settings = Object.fromEntries(
  codeBlocks('sh', [page])
    .find((code) => code.includes('TRUSTED_PROXIES'))!
    .trim()
    .split('\n')
    .map((line) => /^export (\w+)=(\S+)$/.exec(line)!.slice(1) as [string, string]),
)

interface Proxy {
  tool: 'caddy' | 'nginx'
  language: string
  fileName: string
  /** The page's text, for ports and files of this test. */
  fit(text: string, folder: string, port: number): string
  args: string[]
}

const proxies: Proxy[] = [
  {
    tool: 'caddy',
    language: 'caddyfile',
    fileName: 'Caddyfile',
    // Caddy would ask a public authority for certificates of these names.
    fit: (text, folder, port) =>
      `{\n\tadmin off\n\tauto_https off\n}\n` +
      text.replaceAll(
        /^(\S+\.example\.com) \{/gm,
        `https://$1:${port} {\n\ttls ${folder}/tls/both.pem ${folder}/tls/both.key`,
      ),
    args: ['run', '--config', 'Caddyfile'],
  },
  {
    tool: 'nginx',
    language: 'nginx',
    fileName: 'nginx.conf',
    fit: (text, folder, port) =>
      `daemon off;\npid nginx.pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n` +
      ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
        .map((name) => `${name}_temp_path ${name};\n`)
        .join('') +
      text
        .replaceAll('listen 443', `listen 127.0.0.1:${port}`)
        .replaceAll(/\/etc\/postrider\/tls\/\w+\./g, `${folder}/tls/both.`) +
      '}\n',
    args: ['-p', '.', '-c', 'nginx.conf', '-e', 'stderr'],
  },
]

/** One request by TLS, from an address that is not the proxy's. */
async function ask(
  { port, ca }: { port: number; ca: string },
  name: string,
  path: string,
  {
    method = 'GET',
    headers = {},
    body = '',
  }: { method?: string; headers?: Record<string, string>; body?: string },
) {
  const asked = request({
    ...{ host: '127.0.0.1', port, localAddress: '127.0.0.2', servername: name, ca, agent: false },
    ...{ method, path, headers: { host: `${name}:${port}`, ...headers } },
  })
  const answered = new Promise<IncomingMessage>((resolve, reject) =>
    asked.once('response', resolve).once('error', reject),
  )
  asked.end(body)
  const response = await answered
  return { status: response.statusCode!, headers: response.headers, response }
}

async function startProxy(t: TestContext, proxy: Proxy, ports: { collector: number; console: number }) {
  const folder = await temporaryFolder(t)
  const authority = await createAuthority(t)
  const { cert, key } = await authority.issue({ names: [collectorName, consoleName] })
  await mkdir(join(folder, 'tls'))
  await writeFile(join(folder, 'tls/both.pem'), cert)
  await writeFile(join(folder, 'tls/both.key'), key)
  const port = await freePort()
  const [code, ...others] = codeBlocks(proxy.language, [page])
  assert.ok(code && others.length === 0)
  const onOurPorts = code.replaceAll('127.0.0.1:8080', `127.0.0.1:${ports.collector}`)
  await writeFile(
    join(folder, proxy.fileName),
    proxy.fit(onOurPorts.replaceAll('127.0.0.1:8090', `127.0.0.1:${ports.console}`), folder, port),
  )
  const logFile = join(folder, 'proxy.log')
  const child = await startChild({
    command: needed(proxy.tool).path(proxy.tool),
    args: proxy.args,
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', HOME: folder },
    logFile,
  })
  t.after(() => child.kill())
  const at = { port, ca: authority.ca }
  await until(
    async () => {
      if (!child.isRunning()) throw new Error(await readFile(logFile, 'utf8'))
      return ask(at, collectorName, '/', {}).then(
        ({ response }) => text(response).then(() => true),
        () => false,
      )
    },
    30_000,
    `that ${proxy.tool} listens`,
  )
  return at
}

for (const proxy of proxies) {
  // The caller has an address of its own on the loopback interface, which only Linux has without being told.
  const skip = process.platform !== 'linux' ? 'needs 127.0.0.2' : needed(proxy.tool).skip
  test(
    `behind ${proxy.tool} calls come in by TLS with the caller’s address, the console works, and large requests pass`,
    { skip },
    async (t) => {
      const deployment = await deploy(t, settings)
      await withSource(deployment)
      const collector = await startCollector(deployment, { host: loadConfig(deployment.env).collectorHost })
      const console = await startConsole(deployment)
      const consolePort = Number(new URL(console.url).port)
      const at = await startProxy(t, proxy, { collector: collector.port, console: consolePort })

      const call = { writeKey, userId: 'u', event: 'E', messageId: 'm-1' }
      const sent = await ask(at, collectorName, '/v1/t', {
        method: 'POST',
        headers: { 'x-forwarded-for': '192.0.2.66' },
        body: JSON.stringify(call),
      })
      assert.equal(sent.status, 200, await text(sent.response))
      const [record] = await deployment.read(deployment.topics.calls)
      const { context } = await deployment.codecs.calls.decode(record!.value!)
      assert.deepEqual(JSON.parse(context!), { ip: '127.0.0.2' })

      // As a browser logs in, and as the page then changes something.
      const own = { 'content-type': 'application/json', origin: `https://${consoleName}:${at.port}` }
      const login = await ask(at, consoleName, '/api/v1/session', {
        method: 'POST',
        headers: own,
        body: JSON.stringify({ token: adminToken }),
      })
      assert.equal(login.status, 200, await text(login.response))
      const [cookie] = login.headers['set-cookie']!
      assert.match(cookie!, /; Secure/)
      const changed = await ask(at, consoleName, '/api/v1/sources/shop', {
        method: 'PATCH',
        headers: { ...own, cookie: cookie!.split(';')[0]! },
        body: '{"name":"Renamed"}',
      })
      assert.equal(changed.status, 200, await text(changed.response))

      // The path of a pixel is long, and a list of users has no limit.
      const pixel = { ...call, messageId: 'm-2', properties: { text: 'x'.repeat(9_000) } }
      const data = Buffer.from(JSON.stringify(pixel)).toString('base64url')
      assert.ok(data.length > 12_000)
      const shown = await ask(at, collectorName, `/v1/pixel/track?data=${data}`, {})
      assert.equal(shown.status, 200, await text(shown.response))
      const bearer = { authorization: `Bearer ${adminToken}` }
      const created = await ask(at, consoleName, '/api/v1/audiences', {
        method: 'POST',
        headers: { ...bearer, 'content-type': 'application/json' },
        body: '{"id":"vip","name":"VIP","sourceId":"shop"}',
      })
      assert.equal(created.status, 201, await text(created.response))
      const users = Array.from({ length: 2_100 }, (_, index) => String(index).padStart(1_000, 'u'))
      const synced = await ask(at, consoleName, '/api/v1/audiences/vip/sync', {
        method: 'POST',
        // As `curl -T -` sends it.
        headers: { ...bearer, 'content-type': 'text/plain', 'transfer-encoding': 'chunked' },
        body: users.join('\n'),
      })
      const report = await text(synced.response)
      assert.equal(synced.status, 200, report)
      assert.equal((JSON.parse(report) as { entered: number }).entered, users.length)

      // What Live shows comes at once, not when a buffer of the proxy is full.
      const tail = await ask(at, consoleName, '/api/v1/sources/shop/tail', {
        headers: bearer,
      })
      assert.equal(tail.status, 200)
      let seen = ''
      tail.response.setEncoding('utf8').on('data', (chunk: string) => (seen += chunk))
      let sending = 0
      await until(
        async () => {
          const body = JSON.stringify({ ...call, messageId: `live-${sending++}` })
          await ask(at, collectorName, '/v1/t', { method: 'POST', body }).then(({ response }) =>
            text(response),
          )
          return seen.includes('live-')
        },
        30_000,
        'a call in the tail',
      )
      tail.response.destroy()
    },
  )
}
