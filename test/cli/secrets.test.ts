import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeSettingsCli } from '../support/deployment/settings-cli.ts'

const [oldKey, newKey] = ['0123456789abcdef'.repeat(4), 'fedcba9876543210'.repeat(4)]

test('secrets rotate first says how many secrets it will reseal, then reseals them, and the old key is no longer needed', async (t) => {
  const env = { SECRETS_KEY: oldKey }
  const cli = await makeSettingsCli(t, env)
  const run = async (...args: string[]): Promise<string> => {
    const { status, stdout, stderr } = await cli.run(...args)
    assert.equal(status, 0, stderr)
    assert.doesNotMatch(stdout + stderr, /s3cret|t0ken/)
    return stdout
  }
  await run('sources', 'create', '--id', 'shop', '--name', 'Shop')
  await run(
    ...['destinations', 'create', '--id', 'crm', '--name', 'CRM', '--source', 'shop', '--secret', 's3cret-1'],
    ...['--url', 'https://a.example/', '--header', '1:X-Token: t0ken'],
  )
  await run('destinations', 'update', 'crm', '--add-secret', 's3cret-2')
  env.SECRETS_KEY = `${newKey},${oldKey}`
  assert.match(
    await run('secrets', 'rotate', '--dry-run'),
    /^crm +3 +0\n3 secrets would be encrypted again under key [0-9a-f]{8}\n$/m,
  )
  assert.match(
    await run('secrets', 'rotate'),
    /^crm +3 +0\n3 secrets encrypted again under key [0-9a-f]{8}; older keys are needed no longer: .*\n$/m,
  )
  env.SECRETS_KEY = newKey
  assert.match(await run('secrets', 'rotate'), /^0 secrets encrypted again/)
  const [view] = await cli.json('destinations', 'show', 'crm')
  const { sharedSecret, earlierSecret, urls } = view as {
    sharedSecret: { keyId: string }
    earlierSecret: { keyId: string }
    urls: { headers: { keyId: string }[] }[]
  }
  const keys = [sharedSecret, earlierSecret, urls[0]!.headers[0]!].map(({ keyId }) => keyId)
  assert.equal(new Set(keys).size, 1)
  env.SECRETS_KEY = oldKey
  const back = await cli.run('secrets', 'rotate', '--json')
  assert.equal(back.status, 1)
  assert.equal((JSON.parse(back.stdout) as { rotated: number }).rotated, 0)
  assert.match(back.stderr, new RegExp(`destination "crm": .* key ${keys[0]}, which is not in SECRETS_KEY`))
})

test('two secrets are active during a rotation of a secret; options are set, shown and reset', async (t) => {
  const cli = await makeSettingsCli(t, { SECRETS_KEY: oldKey })
  const fails = async (pattern: RegExp, status: number, ...args: string[]): Promise<void> => {
    const result = await cli.run('destinations', ...args)
    assert.match(result.stderr, pattern)
    assert.equal(result.status, status)
    assert.doesNotMatch(result.stderr, /s3cret/)
  }
  const run = async (...args: string[]) => (await cli.json('destinations', ...args))[0]! as unknown as View
  interface View {
    sharedSecret: { fingerprint: string } | null
    earlierSecret: { fingerprint: string } | null
  }
  await cli.json('sources', 'create', '--id', 'shop', '--name', 'Shop')
  const made = await run(
    ...['create', '--id', 'crm', '--name', 'CRM', '--source', 'shop', '--url', 'https://a.example/'],
    ...['--secret', 's3cret-1', '--types', 'track,identify', '--events', 'A, B', '--events', 'C'],
    ...['--standard-webhooks', 'on', '--deliver-to', 'every'],
  )
  const options = { standardWebhooks: true, types: ['track', 'identify'], events: ['A, B', 'C'] }
  assert.partialDeepStrictEqual(made, { ...options, deliverTo: 'every', earlierSecret: null })
  const [first] = [made.sharedSecret!.fingerprint]
  const both = await run('update', 'crm', '--add-secret', 's3cret-2')
  assert.equal(both.earlierSecret!.fingerprint, first)
  const { stdout } = await cli.run('destinations', 'show', 'crm')
  assert.ok(
    new RegExp(`fingerprint ${both.sharedSecret!.fingerprint}\\n +fingerprint ${first}, still active`).test(
      stdout,
    ),
  )
  assert.match(
    stdout,
    /standard webhooks headers +on\ncall types +track\n +identify\nevents +A, B\n +C\ndeliver to +every/,
  )
  await fails(/2 shared secrets are active/, 1, 'update', 'crm', '--add-secret', 's3cret-3')
  await fails(/no shared secret with the fingerprint "x"/, 1, 'update', 'crm', '--remove-secret', 'x')
  await fails(/no shared secret to sign with/, 1, 'update', 'crm', '--remove-secret')
  await fails(/--types is "tracks"; it takes identify, /, 2, 'update', 'crm', '--types', 'tracks')
  await fails(/Allowed choices are any, every/, 2, 'update', 'crm', '--deliver-to', 'all')
  await fails(/cannot be used with/, 2, 'update', 'crm', '--secret', 's3cret', '--add-secret', 's3cret')
  const left = await run('update', 'crm', '--remove-secret', first!)
  assert.equal(left.sharedSecret!.fingerprint, both.sharedSecret!.fingerprint)
  assert.equal(left.earlierSecret, null)
  assert.partialDeepStrictEqual(
    await run(
      ...['update', 'crm', '--remove-secret', '--standard-webhooks', 'off', '--no-types'],
      ...['--no-events', '--deliver-to', 'any'],
    ),
    { standardWebhooks: false, types: null, events: null, deliverTo: 'any', sharedSecret: null },
  )
})
