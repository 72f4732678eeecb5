import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { LookupFunction } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { NameLookup, type DnsQueries } from '../../../src/adapters/webhook/name-lookup.ts'
import { startReceiver } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'
import { openTransport, send } from './transport-under-test.ts'

type Answered = (error: NodeJS.ErrnoException | null, addresses: string[]) => void

/** Names of that kind are never answered, by the system or by DNS. */
const isSilent = (name: string) => name.includes('silent')

/** A DNS server that knows `names` and, of others, whether they exist; `asked` has every question. */
async function startDns(t: TestContext, names: Record<string, string>) {
  const asked: string[] = []
  const server = createSocket('udp4')
  server.on('message', (question, { port, address }) => {
    const labels: string[] = []
    let at = 12
    for (; question[at]! > 0; at += question[at]! + 1)
      labels.push(question.toString('latin1', at + 1, at + 1 + question[at]!))
    const name = labels.join('.')
    const isAddress = question.readUInt16BE(at + 1) === 1
    asked.push(name)
    if (isSilent(name)) return
    const known = names[name]
    const answer = known && isAddress ? known.split('.').map(Number) : []
    const head = Buffer.alloc(12)
    question.copy(head, 0, 0, 2)
    head.writeUInt16BE(known ? 0x8180 : 0x8183, 2)
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(answer.length === 0 ? 0 : 1, 6)
    const record = answer.length === 0 ? [] : [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...answer]
    server.send(Buffer.concat([head, question.subarray(12, at + 5), Buffer.from(record)]), port, address)
  })
  server.bind(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return {
    asked,
    dns: (): DnsQueries => {
      const resolver = (timeout: number) => {
        const made = new Resolver({ timeout, tries: 1 })
        made.setServers([`127.0.0.1:${server.address().port}`])
        return made
      }
      // Only where no answer comes is it given up soon: others come from this process, which may be late.
      const [brief, patient] = [resolver(300), resolver(30_000)]
      const of = (name: string) => (isSilent(name) ? brief : patient)
      return {
        resolve4: (name: string, callback: Answered) => of(name).resolve4(name, callback),
        resolve6: (name: string, callback: Answered) => of(name).resolve6(name, callback),
      } as DnsQueries
    },
  }
}

/** The system's look-up of a table; it says nothing of silent names until they are released. */
function startSystem(table: Record<string, string>) {
  const silent: (() => void)[] = []
  const counts = { running: 0, most: 0 }
  const system: LookupFunction = (name, _options, callback) => {
    counts.most = Math.max(counts.most, ++counts.running)
    const answer = () => {
      counts.running--
      const address = table[name]
      if (address) callback(null, [{ address, family: 4 }])
      else callback(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' }), [])
    }
    if (isSilent(name)) silent.push(answer)
    else setImmediate(answer)
  }
  return { system, counts, release: () => silent.splice(0).forEach((answer) => answer()) }
}

test('names whose servers are silent do not stop the look-ups of others', async (t) => {
  const receiver = await startReceiver(t)
  const { dns } = await startDns(t, { 'shop.test': '127.0.0.1' })
  const { system, counts, release } = startSystem({ 'shop.test': '127.0.0.1' })
  const transport = openTransport(t, { names: { slots: 8, system, dns }, timeoutMs: 30_000 })
  const to = (host: string) => transport.open({ url: `http://${host}:${receiver.port}/`, headers: {} })
  const silent = Array.from({ length: 40 }, (_, index) => send(to(`silent-${index}.test`)))
  await until(() => counts.running === 8)
  assert.equal((await send(to('shop.test'))).kind, 'success')
  assert.equal(counts.most, 8)
  release()
  for (const outcome of await Promise.all(silent)) assert.equal(outcome.kind, 'network')
  // The system is back.
  assert.equal(
    (await send(to('unknown.test'))).detail,
    'the host name does not exist (getaddrinfo ENOTFOUND unknown.test)',
  )
})

test('however many names are looked up, DNS is asked past the system only while that is stuck', async (t) => {
  // By a clock that stands still none is stuck, however late this process is.
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { dns, asked } = await startDns(t, {})
  const table = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`${index}.test`, '192.0.2.1']))
  const { system, counts } = startSystem(table)
  const names = new NameLookup({ slots: 4, system, dns })
  const found = await Promise.all(Object.keys(table).map((name) => find(names, name)))
  assert.ok(found.every((addresses) => addresses === '192.0.2.1'))
  assert.deepEqual([counts.most, asked], [4, []])
})

test('while the system is stuck, the hosts file comes before DNS, and a name that DNS does not know waits', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-hosts-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const hostsFile = join(folder, 'hosts')
  await writeFile(
    hostsFile,
    '# none\n192.0.2.7\tPinned.test alias # 192.0.2.9 no.test\n2001:db8::7 pinned.test\n',
  )
  const { dns, asked } = await startDns(t, { 'pinned.test': '192.0.2.1', 'no.test': '192.0.2.2' })
  const { system, release } = startSystem({ short: '192.0.2.3' })
  const names = new NameLookup({ slots: 1, system, dns, hostsFile })
  const silent = find(names, 'silent.test')
  const [pinned, no, short] = ['pinned.test', 'no.test', 'short'].map((name) => find(names, name))
  assert.equal(await pinned, '192.0.2.7 2001:db8::7')
  assert.equal(await no, '192.0.2.2')
  await until(() => asked.filter((name) => name === 'short').length === 2)
  release()
  assert.equal(await short, '192.0.2.3')
  assert.match(await silent, /ENOTFOUND/)
})

test('a name of which DNS says nothing either is a failure, not one that waits', async (t) => {
  const { dns } = await startDns(t, {})
  const { system, release } = startSystem({})
  const names = new NameLookup({ slots: 1, system, dns })
  const first = find(names, 'silent-1.test')
  assert.match(await find(names, 'silent-2.test'), /ETIMEOUT/)
  release()
  await first
})

/** All addresses, or the error. */
const find = (names: NameLookup, name: string): Promise<string> =>
  new Promise((resolve) => {
    names.find(name, (error, addresses) =>
      resolve(error ? error.message : addresses.map(({ address }) => address).join(' ')),
    )
  })
