import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clearTextWarnings, loadConfig } from '../../src/config/config.ts'
import { secretsOf } from '../../src/adapters/log.ts'

const whole = {
  MAIL_SMTP_URL: 'smtps://post%40rider:p%25w@mail.example.com',
  MAIL_FROM: 'postrider@example.com',
  MAIL_TO: 'ops@example.com, lead@example.com',
}

function faults(changes: Record<string, string | undefined>): string[] {
  try {
    loadConfig({ ...whole, ...changes })
    return []
  } catch (error) {
    return (error as Error).message.split('\n')
  }
}

test('mail is whole or not there, and the error names what is missing', () => {
  assert.equal(loadConfig({}).mail, null)
  // Parts that are not given the login have the other settings all the same.
  assert.equal(loadConfig({ ...whole, MAIL_SMTP_URL: '' }).mail, null)
  assert.deepEqual(loadConfig(whole).mail, {
    server: {
      ...{ host: 'mail.example.com', port: 465, isTls: true },
      login: { user: 'post@rider', password: 'p%w' },
    },
    needsTls: true,
    ca: null,
    from: 'postrider@example.com',
    to: ['ops@example.com', 'lead@example.com'],
  })
  assert.match(faults({ MAIL_FROM: '' }).join(), /^MAIL_FROM is not set; it takes /)
  // Alerts by mail that are set in the console have addresses of their own.
  assert.deepEqual(loadConfig({ ...whole, MAIL_TO: '' }).mail!.to, [])
})

test('a URL that is none of a mail server is refused, and no error shows the login', () => {
  const server = (url: string) => loadConfig({ ...whole, MAIL_SMTP_URL: url }).mail!.server
  assert.deepEqual(server('smtp://mail:2525'), { host: 'mail', port: 2525, isTls: false, login: null })
  assert.deepEqual(server('smtp://[::1]').port, 587)
  for (const url of [
    'https://u:s3cret@mail.example.com',
    'smtp://u@mail.example.com',
    'smtp://u:s3cret@mail.example.com/inbox',
    'smtp://u:s3cret%@mail.example.com',
    'mail.example.com s3cret',
  ]) {
    const [fault, ...more] = faults({ MAIL_SMTP_URL: url })
    assert.deepEqual(more, [], url)
    assert.match(fault!, /^MAIL_SMTP_URL has a wrong value/)
    assert.ok(!fault!.includes('s3cret'), fault)
  }
  for (const to of ['ops', 'ops@example.com,', 'a@b@c', 'x <ops@example.com>\r\nBcc: y@example.com'])
    assert.equal(faults({ MAIL_TO: to }).length, 1, to)
})

test('the password is kept out of the log, and clear text is warned of', () => {
  assert.ok(secretsOf(loadConfig(whole)).includes('p%w'))
  const clear = { ...whole, MAIL_SMTP_URL: 'smtp://u:p@mail.example.com' }
  assert.deepEqual(clearTextWarnings(loadConfig(clear)), [])
  assert.match(
    clearTextWarnings(loadConfig({ ...clear, MAIL_TLS: 'none' })).join(),
    /mail server in clear text/,
  )
})
