import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/config.ts'

const whole = {
  CONSOLE_URL: 'https://postrider.example.com/',
  CONSOLE_OIDC_ISSUER: 'https://id.example.com/',
  CONSOLE_OIDC_CLIENT_ID: 'postrider',
  CONSOLE_OIDC_CLIENT_SECRET: 's3cret',
  CONSOLE_OIDC_ROLES: 'platform=admin,agency=reader:crm:shop-*',
}

/** What is wrong with these settings, a line each. */
function faults(changes: Record<string, string | undefined>): string[] {
  try {
    loadConfig({ ...whole, ...changes })
    return []
  } catch (error) {
    return (error as Error).message.split('\n')
  }
}

test('the login by the company’s own is whole or not there, and the error names what is missing', () => {
  assert.equal(loadConfig({}).companyLogin, null)
  assert.equal(loadConfig({ CONSOLE_URL: whole.CONSOLE_URL }).companyLogin, null)
  assert.deepEqual(loadConfig(whole).companyLogin, {
    issuer: 'https://id.example.com/',
    clientId: 'postrider',
    clientSecret: 's3cret',
    scope: 'openid email',
    rolesClaim: 'groups',
    roles: [
      { value: 'platform', role: 'admin', only: null },
      { value: 'agency', role: 'reader', only: ['crm', 'shop-*'] },
    ],
    sessionMs: 8 * 3_600_000,
    consoleUrl: 'https://postrider.example.com',
  })
  // Forwarders and collectors have the same settings, and not the secret.
  assert.equal(loadConfig({ ...whole, CONSOLE_OIDC_CLIENT_SECRET: '' }).companyLogin!.clientSecret, null)
  const { CONSOLE_OIDC_CLIENT_SECRET: _, ...needed } = whole
  for (const name of Object.keys(needed)) {
    const found = faults({ [name]: undefined })
    assert.equal(found.length, 1, name)
    assert.ok(found[0]!.startsWith(`${name} is not set; it takes `), found[0])
  }
})

test('an issuer is reached over TLS, unless it is on this machine, and a wrong setting shows no secret', () => {
  for (const issuer of [
    'http://id.example.com',
    'https://id.example.com?x=1',
    'https://id.example.com/#x',
    'ftp://x',
  ])
    assert.match(faults({ CONSOLE_OIDC_ISSUER: issuer }).join(), /^CONSOLE_OIDC_ISSUER is /, issuer)
  for (const issuer of ['http://localhost:3000', 'http://127.0.0.1:3000/a', 'http://[::1]:3000'])
    assert.deepEqual(faults({ CONSOLE_OIDC_ISSUER: issuer }), [], issuer)
  for (const [name, value] of [
    ['CONSOLE_OIDC_ROLES', 'platform=owner'],
    ['CONSOLE_OIDC_ROLES', 'agency=admin:crm'],
    ['CONSOLE_OIDC_SCOPE', 'email'],
    ['CONSOLE_OIDC_SESSION', '13h'],
  ] as const) {
    const found = faults({ [name]: value })
    assert.equal(found.length, 1)
    assert.ok(found[0]!.startsWith(`${name} is `) && !found[0]!.includes('s3cret'), found[0])
  }
})
