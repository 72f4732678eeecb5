import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { temporaryFolder } from '../../support/deployment/rig.ts'
import { makeSettingsCli } from '../../support/deployment/settings-cli.ts'
import { oidcSecret, startOidcProvider } from '../../support/oidc.ts'
import { startReceiver } from '../../support/receivers.ts'
import { createAuthority } from '../../support/secured/certificates.ts'

const [oldKey, newKey] = ['0123456789abcdef'.repeat(4), 'fedcba9876543210'.repeat(4)]

/** The commands of one deployment, and files beside them. Nothing that is printed holds PEM. */
async function open(t: TestContext, env: Record<string, string>) {
  const cli = await makeSettingsCli(t, env)
  const folder = await temporaryFolder(t)
  const result = async (...args: string[]) => {
    const { status, stdout, stderr } = await cli.run(...args)
    assert.doesNotMatch(stdout + stderr, /BEGIN|MII/)
    return { status, stdout, stderr }
  }
  const run = async (...args: string[]) => {
    const { status, stdout, stderr } = await result(...args)
    assert.equal(status, 0, stderr)
    return stdout
  }
  await run('sources', 'create', '--id', 'shop', '--name', 'Shop')
  await run(
    ...['destinations', 'create', '--id', 'crm', '--name', 'CRM', '--source', 'shop'],
    ...['--url', 'https://a.example/'],
  )
  const fileOf = async (name: string, text: string) => {
    await writeFile(join(folder, name), text)
    return join(folder, name)
  }
  return { cli, run, fileOf, update: (...args: string[]) => result('destinations', 'update', 'crm', ...args) }
}

interface View {
  clientCert: { keyId: string; certificates: Record<string, string>[] } | null
  clientKey: { keyId: string } | null
  ca: { keyId: string; certificates: Record<string, string>[] } | null
}

test('a certificate, key or CA that does not load is refused when it is set, and says why', async (t) => {
  const { fileOf, update } = await open(t, { SECRETS_KEY: oldKey })
  const authority = await createAuthority(t)
  const [own, other] = [await authority.issue(), await authority.issue({ expired: true })]
  const [cert, key, expired, otherKey, broken, text] = await Promise.all([
    fileOf('cert.pem', own.cert),
    fileOf('key.pem', own.key),
    fileOf('expired.pem', other.cert),
    fileOf('other.key', other.key),
    fileOf('broken.pem', own.cert.replace(/[A-Za-z0-9+/]{40}/, 'A'.repeat(40))),
    fileOf('text.pem', 'no PEM at all'),
  ])
  const cases: [pattern: RegExp, ...args: string[]][] = [
    [/is not the key of the client certificate/, '--client-cert-file', cert!, '--client-key-file', otherKey!],
    [
      /the client certificate has expired: that of CN=localhost ended 2/,
      '--client-cert-file',
      expired!,
      '--client-key-file',
      otherKey!,
    ],
    [/a client certificate and its key are set together/, '--client-cert-file', cert!],
    [/a client certificate and its key are set together/, '--client-key-file', key!],
    [/the client certificate holds no certificate/, '--client-cert-file', key!, '--client-key-file', key!],
    [/the client key holds no private key/, '--client-cert-file', cert!, '--client-key-file', cert!],
    [/certificate 1 of it is broken/, '--client-cert-file', broken!, '--client-key-file', key!],
    [/the own CA holds no certificate/, '--ca-file', text!],
    [/the own CA has expired/, '--ca-file', expired!],
  ]
  for (const [pattern, ...args] of cases) {
    const { status, stderr } = await update(...args)
    assert.match(stderr, pattern)
    assert.equal(status, 2, stderr)
  }
})

test('a login is shown by its certificates alone, is resealed with the other secrets, and is taken away', async (t) => {
  const env = { SECRETS_KEY: oldKey }
  const { cli, run, fileOf, update } = await open(t, env)
  const authority = await createAuthority(t)
  const { cert, key } = await authority.issue({ names: ['postrider.test'] })
  const files = [
    await fileOf('cert.pem', cert),
    await fileOf('key.pem', key),
    await fileOf('ca.pem', authority.ca),
  ]
  const set = ['--client-cert-file', files[0]!, '--client-key-file', files[1]!, '--ca-file', files[2]!]
  assert.equal((await update(...set)).status, 0)
  const view = async () => (await cli.json('destinations', 'show', 'crm'))[0] as unknown as View
  const { fingerprint256, validToDate } = new X509Certificate(cert)
  const before = await view()
  assert.partialDeepStrictEqual(before.clientCert!.certificates, [
    { subject: 'CN=postrider.test', fingerprint: fingerprint256, expiresAt: validToDate.toISOString() },
  ])
  assert.match(before.clientCert!.certificates[0]!.issuer!, /^CN=Postrider test root/)
  assert.equal(before.ca!.certificates.length, 1)
  const shown = await run('destinations', 'show', 'crm')
  assert.match(shown, /client certificate +CN=postrider\.test, issued by CN=Postrider test root/)
  assert.match(shown, /expires 2\S+, in less than 14 days: replace it/)
  assert.match(shown, /own CA +CN=Postrider test root/)

  env.SECRETS_KEY = `${newKey},${oldKey}`
  assert.match(await run('secrets', 'rotate'), /^crm +3 +0\n3 secrets encrypted again/m)
  env.SECRETS_KEY = newKey
  const after = await view()
  assert.deepEqual(after.clientCert!.certificates, before.clientCert!.certificates)
  const keys = [after.clientCert, after.clientKey, after.ca].map((part) => part!.keyId)
  assert.equal(new Set(keys).size, 1)
  assert.notEqual(keys[0], before.clientKey!.keyId)

  assert.equal((await update('--no-client-cert-file', '--no-ca-file')).status, 0)
  assert.partialDeepStrictEqual(await view(), { clientCert: null, clientKey: null, ca: null })
  const history = await run('settings', 'history', '--json')
  assert.match(history, /"field":"clientCert"/)
})

test('a settings file refers to a login by variables: it stays where they are not set, and changes with them', async (t) => {
  const env: Record<string, string> = { SECRETS_KEY: oldKey }
  const { cli, run, fileOf, update } = await open(t, env)
  const authority = await createAuthority(t)
  const [first, second] = [await authority.issue(), await authority.issue()]
  const files = [await fileOf('cert.pem', first.cert), await fileOf('key.pem', first.key)]
  const caFile = await fileOf('ca.pem', authority.ca)
  await update('--client-cert-file', files[0]!, '--client-key-file', files[1]!, '--ca-file', caFile)
  const exported = await run('settings', 'export')
  for (const name of ['CLIENT_CERT', 'CLIENT_KEY', 'CA'])
    assert.ok(exported.includes(`\${POSTRIDER_SECRET_CRM_${name}}`), exported)
  const file = await fileOf('settings.yml', exported)
  const subjects = async () => {
    const [view] = (await cli.json('destinations', 'show', 'crm')) as unknown as View[]
    return view!.clientCert?.certificates.map(({ fingerprint }) => fingerprint)
  }
  const before = await subjects()
  assert.match(await run('settings', 'apply', file), /nothing to change/)
  Object.assign(env, {
    POSTRIDER_SECRET_CRM_CLIENT_CERT: first.cert,
    POSTRIDER_SECRET_CRM_CLIENT_KEY: first.key,
    POSTRIDER_SECRET_CRM_CA: authority.ca,
  })
  assert.match(await run('settings', 'apply', file), /nothing to change/)
  env.POSTRIDER_SECRET_CRM_CLIENT_CERT = second.cert
  const half = await cli.run('settings', 'apply', file)
  assert.match(half.stderr, /is not the key of the client certificate/)
  assert.match(half.stderr, /clientKey/)
  env.POSTRIDER_SECRET_CRM_CLIENT_KEY = second.key
  assert.match(await run('settings', 'apply', file), /1 change applied/)
  assert.notDeepEqual(await subjects(), before)
  await fileOf('settings.yml', exported.replaceAll(/^ +(clientCert|clientKey|ca): .*\n/gm, ''))
  assert.match(await run('settings', 'apply', file), /1 change applied/)
  assert.equal(await subjects(), undefined)
})

test('OAuth2 is set as a whole, used by test, hidden by a dry run, exported by a variable, and taken away as a whole', async (t) => {
  const env = { SECRETS_KEY: oldKey, WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' }
  const { cli, run, fileOf, update } = await open(t, env)
  const provider = await startOidcProvider(t)
  const receiver = await startReceiver(t)
  const secretFile = await fileOf('secret.txt', `${oidcSecret}\n`)
  const { tokenUrl, clientId } = provider.login
  const fails = async (pattern: RegExp, ...args: string[]) => {
    const { status, stderr } = await update(...args)
    assert.match(stderr, pattern)
    assert.ok(status !== 0 && !stderr.includes(oidcSecret))
  }
  const [url, id] = [
    ['--oauth-token-url', tokenUrl],
    ['--oauth-client-id', clientId],
  ]
  const secret = ['--oauth-client-secret-file', secretFile]
  await fails(/a token URL needs a client id; a token URL needs a client secret/, ...url)
  await fails(/a token URL is needed for what else is set of OAuth2/, ...id, ...secret)
  const nothing = ['--oauth-client-secret-file', await fileOf('empty.txt', '\n')]
  await fails(/the OAuth2 client secret is 0 bytes long, 1-1024 are allowed/, ...url, ...id, ...nothing)
  await fails(/the token URL is not an absolute URL/, '--oauth-token-url', 'id.test', ...id, ...secret)
  const all = [...url, ...id, ...secret, '--oauth-scope', 'calls']
  await fails(/OAuth2 makes the Authorization header/, ...all, '--header', '1:authorization: Basic YTpi')
  const set = await update(...all, '--url', receiver.url)
  assert.equal(set.status, 0, set.stderr)
  assert.match(set.stdout, /oauth2 client secret +fingerprint [0-9a-f]{12}/i)
  await fails(/OAuth2 makes the Authorization header/, '--header', '1:authorization: Basic YTpi')
  await fails(/needs the client secret again/, '--oauth-token-url', receiver.url)

  assert.match(await run('destinations', 'test', 'crm'), /^1 +success +200 /m)
  const [request] = await receiver.waitFor(1)
  assert.equal(request!.headers.authorization, `Bearer ${provider.issued[0]}`)
  const dry = await run('destinations', 'test', 'crm', '--dry-run')
  assert.match(dry, /^Authorization: Bearer \[not shown\]$/m)
  assert.equal(receiver.requests.length, 1)
  assert.match(await run('settings', 'export'), /oauthClientSecret: \$\{POSTRIDER_SECRET_CRM_OAUTH\}/)
  await provider.stop()
  const away = await cli.run('destinations', 'test', 'crm')
  assert.match(away.stdout, /^1 +no_token +- .*gives no token/m)

  assert.equal((await update('--no-oauth-token-url')).status, 0)
  const [view] = await cli.json('destinations', 'show', 'crm')
  const none = { oauthTokenUrl: null, oauthClientId: null, oauthScope: null, oauthClientSecret: null }
  assert.partialDeepStrictEqual(view, none)
})
