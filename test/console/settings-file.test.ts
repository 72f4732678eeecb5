import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { createSecrets } from '../../src/adapters/secrets.ts'
import { decideAny } from '../../src/core/apply/apply-rules.ts'
import { schemaRefusal } from '../../src/adapters/json-schema/compile-schema.ts'
import { noRules } from '../../src/core/settings/deployment-rules.ts'
import type { SettingsCommand } from '../../src/core/settings/commands.ts'
import { evolve } from '../../src/core/settings/events.ts'
import { placedSecrets } from '../../src/core/settings/secrets.ts'
import { initialSettings, type SettingsAggregate } from '../../src/core/settings/settings.ts'
import { defaultSourceOptions } from '../../src/core/settings/source-options.ts'
import {
  settingsFile,
  variablesIn,
  type GivenSettingsFile,
} from '../../src/operators/settings/file-schema.ts'
import { applySettings, type ApplyOptions, exportedSettings } from '../../src/operators/settings/file.ts'
import { SettingsRefused, type SettingsWriter } from '../../src/operators/settings/writer.ts'
import { selfSigned } from '../support/secured/certificates.ts'

const secrets = createSecrets([Buffer.alloc(32, 7)])

/** Settings in memory, decided on as the log does it. */
class MemorySettings {
  state: SettingsAggregate = initialSettings
  rules = noRules

  async perform(command: Parameters<SettingsWriter['perform']>[0]) {
    const decision = decideAny(command, this.state, this.rules)
    if (!decision.accepted) throw new SettingsRefused(decision.faults)
    if (decision.event) this.state = evolve(this.state, decision.event)
    return { state: this.state, event: decision.event, repeated: false }
  }

  execute(command: SettingsCommand) {
    return this.perform(command)
  }

  apply(
    given: GivenSettingsFile,
    variables: Record<string, string> = {},
    options: Partial<ApplyOptions> = {},
  ) {
    const ports = { settings: this as unknown as SettingsWriter, secrets, schemaRefusal }
    const all = { dryRun: false, prune: false, ...options }
    return applySettings(settingsFile.parse(given), new Map(Object.entries(variables)), all, ports)
  }

  /** Every secret as text, each with its place. */
  texts() {
    return [...this.state.destinations.values()].flatMap((destination) =>
      placedSecrets(destination).map(({ place, sealed }) => [place, secrets.open(sealed, place)]),
    )
  }
}

async function faultsOf(applied: Promise<unknown>): Promise<[field: string, message: string][]> {
  const error = await applied.then(
    () => assert.fail('it was accepted'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof SettingsRefused, String(error))
  return error.faults.map(({ field, message }) => [field, message])
}

const shop = { id: 'shop', name: 'Shop', writeKey: 'k' }
const crm = { id: 'crm', name: 'CRM', sourceIds: ['shop'], urls: [{ url: 'https://a.example/' }] }

// Files that are right in themselves, of few ids, so that two of them meet.
const sourceIds = ['s1', 's2', 's3']
const variable = fc.constantFrom('A', 'B', 'C').map((name) => `\${${name}}`)
const url = fc.record({
  url: fc.constantFrom('https://1.example/', 'https://2.example/', 'https://3.example/a'),
  headers: fc.dictionary(fc.constantFrom('X-One', 'X-Two'), variable),
})
const destination = (id: string) =>
  fc
    .record({
      name: fc.constantFrom('One', 'Two: #3', '4'),
      enabled: fc.boolean(),
      sourceIds: fc.uniqueArray(fc.constantFrom(...sourceIds, 'postrider'), { minLength: 1 }),
      urls: fc.uniqueArray(url, { minLength: 1, maxLength: 3, selector: (each) => each.url }),
      signed: fc.constantFrom<object[]>(
        {},
        { sharedSecret: '${A}' },
        { sharedSecret: '${B}', earlierSecret: '${C}' },
      ),
      types: fc.constantFrom<('track' | 'page')[] | null>(null, ['track', 'page']),
      deliverTo: fc.constantFrom('any' as const, 'every' as const),
    })
    .map(({ signed, ...rest }) => ({ id, ...rest, ...signed }))
const source = (id: string) =>
  fc
    .record(
      {
        enabled: fc.boolean(),
        maxRate: fc.constantFrom(null, '5/s', '600/m'),
        ip: fc.constantFrom('keep' as const, 'truncate' as const, 'drop' as const),
        bots: fc.constantFrom('keep' as const, 'flag' as const, 'drop' as const),
      },
      { requiredKeys: ['enabled'] },
    )
    .map((rest) => ({ id, name: id, ...rest }))
const file: fc.Arbitrary<GivenSettingsFile> = fc.record({
  sources: fc.tuple(...sourceIds.map(source)),
  destinations: fc
    .subarray(['a-b', 'a_b', 'c'])
    .chain((ids) => fc.tuple(...ids.map(destination)) as fc.Arbitrary<(typeof crm)[]>),
  audiences: fc.constantFrom([], [{ id: 'vip', name: 'VIP', sourceId: 's1' }]),
})
const values = fc.record({
  A: fc.constantFrom('one', 'two'),
  B: fc.constantFrom('b1', 'b2'),
  C: fc.constant('c'),
})

test('an export that is applied changes nothing, and elsewhere it leads to the same settings', async () => {
  await fc.assert(
    fc.asyncProperty(file, file, values, values, async (first, second, texts, others) => {
      const settings = new MemorySettings()
      await settings.apply(first, texts)
      await settings.apply(second, others, { prune: true })
      assert.equal((await settings.apply(second, others, { prune: true })).applied, false, 'it was there')
      const before = settings.state
      for (const source of second.sources!)
        assert.partialDeepStrictEqual(before.sources.get(source.id), { ...defaultSourceOptions, ...source })

      const exported = exportedSettings(before)
      assert.equal((await settings.apply(exported, {}, { prune: true })).applied, false)
      assert.equal(settings.state, before)
      const names = new Set(variablesIn(settingsFile.parse(exported)).map(({ variable }) => variable))
      assert.ok([...names].every((name) => /^POSTRIDER_SECRET_\w+$/.test(name)))
      assert.equal(names.size, settings.texts().length, 'no two have one name')

      const elsewhere = new MemorySettings()
      const found = variablesByPlace(exported, settings)
      await elsewhere.apply(exported, found)
      assert.deepEqual(exportedSettings(elsewhere.state), exported)
      assert.deepEqual(elsewhere.texts(), settings.texts())
    }),
    { numRuns: 300 },
  )
})

/** The text of each variable of an export, by where it is used. */
function variablesByPlace(exported: GivenSettingsFile, settings: MemorySettings): Record<string, string> {
  const found: Record<string, string> = {}
  for (const { id, sharedSecret, earlierSecret, urls } of exported.destinations ?? []) {
    const destination = settings.state.destinations.get(id)!
    const texts = placedSecrets(destination).map(({ place, sealed }) => secrets.open(sealed, place))
    const names = [sharedSecret, earlierSecret, ...urls.flatMap(({ headers = {} }) => Object.values(headers))]
    const used = names.filter((name) => typeof name === 'string')
    used.forEach((name, index) => (found[name.slice(2, -1)] = texts[index]!))
  }
  return found
}

test('every fault is named with its place in the file, and nothing is changed', async () => {
  const settings = new MemorySettings()
  await settings.apply({ sources: [shop], audiences: [{ id: 'vip', name: 'VIP', sourceId: 'shop' }] })
  const { state } = settings
  const faults = await faultsOf(
    settings.apply(
      {
        sources: [{ id: 'Web', name: ' ' }, { ...shop, name: 'The shop' }, shop],
        destinations: [
          crm,
          { ...crm, id: 'of-web', sourceIds: ['Web'] },
          {
            ...crm,
            id: 'bad',
            urls: [{ url: 'ftp://x/', headers: { 'X-A': '${ABSENT}' } }],
            sourceIds: ['none'],
          },
          { ...crm, id: 'unsigned', standardWebhooks: true, earlierSecret: '${SET}' },
          { ...crm, id: 'signed', standardWebhooks: true, sharedSecret: '${ABSENT}' },
        ],
        audiences: [{ id: 'vip', name: 'Other', sourceId: 'shop' }],
        traits: [{ id: 'vip', name: 'Total', sourceId: 'shop' }],
      },
      { SET: 'x' },
    ),
  )
  assert.deepEqual(
    faults.map(([field]) => field),
    [
      'sources.0.id',
      'sources.0.name',
      'sources.2.id',
      'destinations.2.urls.0.headers.X-A',
      'destinations.2.sourceIds',
      'destinations.2.urls',
      'destinations.3.standardWebhooks',
      'destinations.4.sharedSecret',
      'audiences.0.name',
      'traits.0.id',
    ],
  )
  assert.match(faults[3]![1], /^destination "bad": ABSENT is not set/)
  assert.equal(settings.state, state)
})

test('of ten thousand faults a hundred are named', async () => {
  const destinations = Array.from({ length: 10_000 }, (_, index) => ({
    ...crm,
    id: `d${index}`,
    sourceIds: ['none'],
  }))
  const refused = new MemorySettings().apply({ destinations })
  await assert.rejects(refused, (error: SettingsRefused) => {
    const named = error.message.split('; ')
    assert.equal(error.faults.length, 10_000)
    return named.length === 101 && named.at(-1) === 'and 9900 more'
  })
})

test('a file can subscribe to operational events, and cannot have a source of their id', async () => {
  const settings = new MemorySettings()
  const ops = { ...crm, sourceIds: ['postrider'] }
  await settings.apply({ destinations: [ops] })
  assert.deepEqual(exportedSettings(settings.state).sources, [])
  const [[field, message] = []] = await faultsOf(settings.apply({ sources: [{ ...shop, id: 'postrider' }] }))
  assert.equal(field, 'sources.0.id')
  assert.match(message!, /is built in/)
})

test('secrets do not stand in a file, and no fault repeats one', () => {
  const hidden = {
    ...crm,
    sharedSecret: 'hush-hush',
    urls: [{ url: 'https://a.example/', headers: { A: 'Bearer ${T} hush' } }],
  }
  const { error } = settingsFile.safeParse({ destinations: [hidden] })
  assert.deepEqual(error!.issues.map(({ path }) => path.join('.')).sort(), [
    'destinations.0.sharedSecret',
    'destinations.0.urls.0.headers.A',
  ])
  assert.ok(!error!.message.includes('hush'))
})

test('pruning disables what the file does not name, deletes nothing, and says what it cannot disable', async () => {
  const settings = new MemorySettings()
  const audience = { id: 'vip', name: 'VIP', sourceId: 'shop' }
  await settings.apply({
    sources: [shop, { id: 'web', name: 'Web' }],
    destinations: [crm],
    audiences: [audience],
  })
  const { state } = settings
  const report = await settings.apply(
    { sources: [{ id: 'web', name: 'Web' }] },
    {},
    { dryRun: true, prune: true },
  )
  assert.equal(settings.state, state)
  assert.deepEqual(
    report.changed.map(({ kind, id, changes }) => [kind, id, changes]),
    [
      ['source', 'shop', [{ field: 'enabled', from: true, to: false }]],
      ['destination', 'crm', [{ field: 'enabled', from: true, to: false }]],
    ],
  )
  assert.deepEqual(report.keptComputations, [{ kind: 'audience', id: 'vip' }])
  assert.equal((await settings.apply({ sources: [] })).applied, false, 'without it, that is left alone')
  await settings.apply({}, {}, { prune: true })
  assert.deepEqual([...settings.state.sources.keys()], ['shop', 'web'])
  assert.ok([...settings.state.destinations.values()].every(({ enabled }) => !enabled))
  assert.equal(settings.state.version, 2)
})

test('a secret is written only where its text is another one; a file can rotate it', async () => {
  const settings = new MemorySettings()
  const headers = { 'X-A': '${HEADER}', 'X-B': '${HEADER}' }
  const urls = [{ url: 'https://a.example/', headers }]
  const signed = { ...crm, urls, sharedSecret: '${NEW}' }
  await settings.apply({ sources: [shop], destinations: [signed] }, { NEW: 'one', HEADER: 'h' })
  const sealed = settings.state.destinations.get('crm')!
  const rotated = { ...signed, earlierSecret: '${OLD}' }
  await settings.apply({ destinations: [rotated] }, { NEW: 'two', OLD: 'one', HEADER: 'h' })
  const after = settings.state.destinations.get('crm')!
  assert.equal(after.earlierSecret, sealed.sharedSecret, 'the same bytes')
  assert.deepEqual(after.urls, sealed.urls)
  assert.deepEqual(
    settings.texts().map(([, text]) => text),
    ['two', 'one', 'h', 'h'],
  )

  const only = { ...signed, urls: [{ url: 'https://a.example/', headers: { 'x-b': '${HEADER}' } }] }
  const report = await settings.apply({ destinations: [only] }, { HEADER: 'h' })
  assert.deepEqual(report.keptSecrets, ['NEW'])
  assert.deepEqual(
    settings.texts().map(([, text]) => text),
    ['two', 'h'],
  )
  assert.deepEqual(
    settings.state.destinations.get('crm')!.urls[0]!.headers.map(({ name }) => name),
    ['x-b'],
  )
})

test('a certificate that is there already, and has expired since, does not hold up a file', async () => {
  const { cert, key } = await selfSigned()
  const expired = new X509Certificate(cert).validToDate.getTime()
  const settings = new MemorySettings()
  const destination = { ...crm, clientCert: '${CERT}', clientKey: '${KEY}', ca: '${CA}' }
  const applyAt = (now: number, name: string, id = 'crm') =>
    applySettings(
      settingsFile.parse({ sources: [{ ...shop, name }], destinations: [{ ...destination, id }] }),
      new Map(Object.entries({ CERT: cert, KEY: key, CA: cert })),
      { dryRun: false, prune: false },
      { settings: settings as unknown as SettingsWriter, secrets, schemaRefusal, now: () => now },
    )
  await applyAt(expired - 1, 'Shop')
  const { changed } = await applyAt(expired, 'Other')
  assert.deepEqual(
    changed.map(({ kind, id }) => [kind, id]),
    [['source', 'shop']],
  )
  const faults = await faultsOf(applyAt(expired, 'Other', 'new'))
  assert.deepEqual(
    faults.map(([field]) => field),
    ['destinations.0.clientCert', 'destinations.0.ca'],
  )
})
