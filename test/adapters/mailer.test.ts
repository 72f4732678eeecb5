import assert from 'node:assert/strict'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { test } from 'node:test'
import { openMailer } from '../../src/adapters/mailer.ts'
import type { MailSettings } from '../../src/config/mail.ts'
import type { Mail } from '../../src/operators/alerts/mail.ts'
import { mailLogin, startMailServer, type TestMailServer } from '../support/mail-server.ts'

const mail: Mail = {
  subject: '[Postrider] Down: crm (u1): status 503 – é',
  text: 'Down: crm (u1)\n\nhttps://postrider.example.com/destinations/crm\n',
  id: 'postrider-abc',
  thread: 'postrider-thread',
}

const ops = ['ops@example.com']

const settingsOf = (
  { port, ca }: Pick<TestMailServer, 'port' | 'ca'>,
  given: Partial<MailSettings> & { isTls?: boolean; login?: MailSettings['server']['login'] } = {},
): MailSettings => {
  const { isTls = false, login = mailLogin, ...rest } = given
  const server = { host: '127.0.0.1', port, isTls, login }
  return { server, needsTls: true, ca, from: 'postrider@example.com', to: [], ...rest }
}

test('a mail is sent over TLS, by STARTTLS or from the first byte, with the login', async (t) => {
  for (const isTls of [false, true]) {
    const server = await startMailServer(t, { secure: isTls })
    const answer = await openMailer(settingsOf(server, { isTls })).send(mail, ops)
    assert.deepEqual([answer.outcome, answer.detail], ['taken', '250 kept'])
    const [text] = server.mails
    assert.match(text!, /^Subject: =\?UTF-8\?/m)
    assert.match(text!, /^Message-ID: <postrider-abc@example\.com>\r$/m)
    assert.match(text!, /^References: <postrider-thread@example\.com>\r$/m)
    assert.match(text!, /^Auto-Submitted: auto-generated\r$/m)
    assert.match(text!, /https:\/\/postrider\.example\.com\/destinations\/crm/)
  }
})

test('without TLS nothing is sent, neither mail nor login, unless it is told otherwise', async (t) => {
  const server = await startMailServer(t, { disabledCommands: ['STARTTLS'], allowInsecureAuth: true })
  const refused = await openMailer(settingsOf(server)).send(mail, ops)
  assert.equal(refused.outcome, 'failed')
  assert.match(refused.detail, /STARTTLS/i)
  assert.deepEqual(server.mails, [])
  const clear = await openMailer(settingsOf(server, { needsTls: false })).send(mail, ops)
  assert.equal(clear.outcome, 'taken')
})

test('a server whose certificate nobody vouches for gets nothing', async (t) => {
  const server = await startMailServer(t)
  const { outcome, detail } = await openMailer(settingsOf(server, { ca: null })).send(mail, ops)
  assert.equal(outcome, 'failed')
  assert.match(detail, /certificate/i)
  assert.deepEqual(server.mails, [])
})

test('a wrong login fails, and what is said of it has no password', async (t) => {
  const server = await startMailServer(t, {
    onAuth: ({ password }, _, done) => done(new Error(`wrong password ${password}`)),
  })
  const { outcome, detail } = await openMailer(settingsOf(server)).send(mail, ops)
  // It may be set right: what waits is not given up.
  assert.equal(outcome, 'failed')
  assert.match(detail, /wrong password/)
  assert.ok(!detail.includes(mailLogin.password), detail)
})

test('a recipient that the server refuses is named, and others get the mail; where all are refused, nobody does', async (t) => {
  const server = await startMailServer(t)
  const some = await openMailer(settingsOf(server)).send(mail, ['nobody@example.com', 'ops@example.com'])
  assert.deepEqual([some.outcome, some.refusedFor], ['taken', ['nobody@example.com']])
  assert.deepEqual(server.recipients, [['ops@example.com']])
  const none = await openMailer(settingsOf(server)).send(mail, ['nobody@example.com'])
  assert.equal(none.outcome, 'refused')
  assert.match(none.detail, /550.*no such user nobody@example\.com/)
})

test('a server that is away, that puts off, or that hangs has failed for now, within its time', async (t) => {
  const server = await startMailServer(t, {
    onMailFrom: (_, __, done) => done(Object.assign(new Error('try again later'), { responseCode: 451 })),
  })
  const later = await openMailer(settingsOf(server)).send(mail, ops)
  assert.deepEqual([later.outcome, /451/.test(later.detail)], ['failed', true])
  await server.goAway()
  const away = await openMailer(settingsOf(server)).send(mail, ops)
  assert.deepEqual([away.outcome, /ECONNREFUSED/.test(away.detail)], ['failed', true])

  const sockets = new Set<Socket>()
  const silent = createServer((socket) => sockets.add(socket.on('error', () => {})))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const { port } = silent.address() as AddressInfo
  const hangs = await openMailer(settingsOf({ port, ca: server.ca }), { totalMs: 300 }).send(mail, ops)
  assert.deepEqual(hangs, { outcome: 'failed', detail: 'no answer within 0.3 s' })
})
