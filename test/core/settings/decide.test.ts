import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultOptions, type OptionsEdit } from '../../../src/core/settings/destination-options.ts'
import type { HeaderEdit, NewSecret, SettingsCommand } from '../../../src/core/settings/commands.ts'
import { decide } from '../../../src/core/settings/decide.ts'
import { noRules } from '../../../src/core/settings/deployment-rules.ts'
import { leadingCode } from '../../../src/core/decision.ts'
import {
  headerPlace,
  sharedSecretPlace,
  initialSettings,
  type Destination,
  type SealedSecret,
  type SettingsAggregate,
  noLogin,
} from '../../../src/core/settings/settings.ts'
import { placedSecrets } from '../../../src/core/settings/secrets.ts'
import { evolve } from '../../../src/core/settings/events.ts'
import { someSource } from '../../support/sources.ts'

/** Stands for sealing: the length is kept, as AES-GCM keeps it. */
const secret = (text: string, tag = 't'): NewSecret & { sealed: SealedSecret } => {
  const ciphertext = Buffer.from(text).toString('base64url')
  const fingerprint = `fp-${text.slice(0, 4)}`
  const sealed = { keyId: 'k', iv: 'i', ciphertext, tag, fingerprint }
  return { text, fingerprint, sealed, seal: () => sealed }
}

const header = (urlNumber: number, name: string, value: string | null): HeaderEdit => ({
  urlNumber,
  name,
  value: value === null ? null : secret(value),
})

function after(...commands: SettingsCommand[]): SettingsAggregate {
  return commands.reduce((state, command) => {
    const decision = decide(command, state)
    assert(decision.accepted, JSON.stringify(decision))
    return decision.event ? evolve(state, decision.event) : state
  }, initialSettings)
}

function faultsOf(command: SettingsCommand, state: SettingsAggregate): string[] {
  const decision = decide(command, state)
  assert(!decision.accepted, 'was accepted')
  return decision.faults.map(({ message }) => message)
}

const shop: SettingsCommand = {
  type: 'create_source',
  id: 'shop',
  name: 'Shop',
  writeKey: 'key-1',
  enabled: true,
}
type CreateDestination = Extract<SettingsCommand, { type: 'create_destination' }>
const crm: CreateDestination = {
  type: 'create_destination',
  id: 'crm',
  name: 'CRM',
  sourceIds: ['shop'],
  urls: ['https://a.example/hook', 'https://b.example/hook'],
  headers: [header(2, 'Authorization', 'Bearer b')],
  sharedSecret: secret('s3cret'),
  enabled: true,
}
const destination = (state: SettingsAggregate): Destination => state.destinations.get('crm')!
const idsAndUrls = (state: SettingsAggregate) => destination(state).urls.map(({ id, url }) => [id, url])

test('a source and a destination are created as requested', () => {
  const state = after(shop, crm)
  assert.equal(state.version, 2)
  assert.deepEqual(state.sources.get('shop'), someSource('shop', { name: 'Shop', writeKey: 'key-1' }))
  assert.deepEqual(destination(state), {
    id: 'crm',
    name: 'CRM',
    type: 'Webhooks',
    sourceIds: ['shop'],
    urls: [
      { id: 'u1', url: 'https://a.example/hook', headers: [], goneAt: null },
      {
        id: 'u2',
        url: 'https://b.example/hook',
        headers: [{ name: 'Authorization', value: secret('Bearer b').sealed }],
        goneAt: null,
      },
    ],
    sharedSecret: secret('s3cret').sealed,
    earlierSecret: null,
    login: noLogin,
    templateSecrets: [],
    options: defaultOptions,
    enabled: true,
    pause: null,
    endedPauses: [],
  })
})

test('all faults of a command are named at once, and none of them repeats a secret', () => {
  const faults = faultsOf(
    {
      ...crm,
      id: 'CRM!',
      name: '  ',
      sourceIds: ['shop', 'shop', 'nowhere'],
      urls: [
        'ftp://a.example/x',
        '/relative',
        'https://user:hunter2@c.example/',
        'https://d.example',
        'https://D.example/#top',
        `https://e.example/${'x'.repeat(2_100)}`,
      ],
      headers: [
        header(7, 'X-Far', 'v'),
        header(1, 'Host', 'v'),
        header(1, 'bad name', 'v'),
        header(2, 'X-Break', 'hunter3\r\nX: y'),
        header(2, 'x-break', 'v'),
      ],
      sharedSecret: secret('x'.repeat(257)),
    },
    after(shop),
  )
  assert.deepEqual(faults, [
    'id "CRM!" must be 1-64 of a-z, 0-9, "_" and "-", and begin with a letter or digit',
    'the name is empty',
    'source "shop" is named twice',
    'source "nowhere" does not exist',
    '6 URLs are given, at most 5 are allowed',
    'URL 1 begins with "ftp:", only http:// and https:// are allowed',
    'URL 2 is not an absolute URL such as https://example.com/hook',
    'URL 3 holds a user name or password: send them in a header instead',
    'URL 5 is the same as URL 4',
    'URL 6 is 2118 characters long, at most 2048 are allowed',
    'header "X-Far" of URL 7: there is no such URL, they are numbered from 1 to 6',
    'header "Host" of URL 1 cannot be set: the name is reserved',
    'header "bad name" of URL 1 is not a valid header name',
    'header "X-Break" of URL 2 has a line break in its value',
    'header x-break of URL 2 is given twice',
    'the shared secret is 257 bytes long, 1-256 are allowed',
  ])
  assert.doesNotMatch(faults.join(), /hunter/)
})

test('a refusal says whether the command was invalid, about something unknown, or in conflict', () => {
  const state = after(shop, crm)
  const codeOf = (command: SettingsCommand) => {
    const decision = decide(command, state)
    return decision.accepted ? null : leadingCode(decision.faults)
  }
  assert.equal(codeOf(shop), 'conflict')
  assert.equal(codeOf({ ...shop, id: 'other' }), 'conflict')
  assert.equal(codeOf({ ...shop, id: 'other', writeKey: 'a:b' }), 'usage')
  assert.equal(codeOf(crm), 'conflict')
  assert.equal(codeOf({ ...crm, id: 'other', sourceIds: ['nowhere'] }), 'not_found')
  for (const type of [
    'update_source',
    'enable_source',
    'disable_source',
    'update_destination',
    'enable_destination',
    'disable_destination',
  ] as const)
    assert.equal(codeOf({ type, id: 'nowhere' }), 'not_found')
  assert.equal(codeOf({ type: 'update_source', id: 'shop' }), 'usage')
  assert.equal(codeOf({ type: 'update_destination', id: 'crm' }), 'usage')
})

test('a write key belongs to one source, also if it is changed later', () => {
  const state = after(shop, { ...shop, id: 'app', writeKey: 'key-2' })
  assert.deepEqual(faultsOf({ type: 'update_source', id: 'app', writeKey: 'key-1' }, state), [
    'the write key is in use by source "shop"',
  ])
  const kept = decide({ type: 'update_source', id: 'app', writeKey: 'key-2' }, state)
  assert.equal(kept.accepted, true)
})

test('a URL keeps its id and headers at any position, and a new URL gets an id that was never used', () => {
  let state = after(shop, crm, {
    type: 'update_destination',
    id: 'crm',
    urls: ['https://c.example/', 'https://b.example/hook'],
  })
  assert.deepEqual(idsAndUrls(state), [
    ['u3', 'https://c.example/'],
    ['u2', 'https://b.example/hook'],
  ])
  assert.deepEqual(destination(state).urls[0]!.headers, [])
  assert.equal(destination(state).urls[1]!.headers[0]!.name, 'Authorization')

  const back = decide(
    { type: 'update_destination', id: 'crm', urls: ['https://a.example/hook', 'https://c.example'] },
    state,
  )
  assert(back.accepted && back.event)
  state = evolve(state, back.event)
  assert.deepEqual(idsAndUrls(state), [
    ['u4', 'https://a.example/hook'],
    ['u3', 'https://c.example'],
  ])
})

test('an update changes exactly the fields that it names', () => {
  const before = after(shop, crm)
  const state = after(shop, crm, { type: 'update_destination', id: 'crm', name: 'New' })
  assert.deepEqual(destination(state), { ...destination(before), name: 'New' })
  const unsigned = after(shop, crm, { type: 'update_destination', id: 'crm', sharedSecret: null })
  assert.deepEqual(destination(unsigned), { ...destination(before), sharedSecret: null })
})

test('a header is set, replaced whatever its case, and removed, and the others stay', () => {
  const names = (state: SettingsAggregate) =>
    destination(state).urls.map(({ headers }) => headers.map(({ name }) => name))
  const set: SettingsCommand = {
    type: 'update_destination',
    id: 'crm',
    headers: [header(2, 'X-Team', 'blue'), header(1, 'X-Team', 'red')],
  }
  assert.deepEqual(names(after(shop, crm, set)), [['X-Team'], ['Authorization', 'X-Team']])
  const replace: SettingsCommand = { ...set, headers: [header(2, 'AUTHORIZATION', 'new')] }
  const replaced = after(shop, crm, set, replace)
  assert.deepEqual(names(replaced), [['X-Team'], ['X-Team', 'AUTHORIZATION']])
  const remove: SettingsCommand = { ...set, headers: [header(2, 'authorization', null)] }
  assert.deepEqual(names(after(shop, crm, set, remove)), [['X-Team'], ['X-Team']])
})

test('the limits of 20 headers and 8 KB include headers that were set before', () => {
  const state = after(shop, {
    ...crm,
    headers: [header(1, 'X-Big', 'x'.repeat(8_000)), header(2, 'X-Small', 'v')],
  })
  assert.deepEqual(
    faultsOf(
      {
        type: 'update_destination',
        id: 'crm',
        headers: [
          header(1, 'X-More', 'x'.repeat(300)),
          ...Array.from({ length: 20 }, (_, index) => header(2, `X-${index}`, 'v')),
        ],
      },
      state,
    ),
    [
      'URL 1 has 8311 bytes of headers, at most 8192 are allowed',
      'URL 2 has 21 headers, at most 20 are allowed',
    ],
  )
})

for (const name of [
  'User-Agent',
  'content-type',
  'X-Signature',
  'Idempotency-Key',
  'HOST',
  'Content-Length',
  'webhook-id',
  'Webhook-Signature',
  'Connection',
  'Keep-Alive',
  'TE',
  '__proto__',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Proxy-Authorization',
])
  test(`the header ${name} cannot be set`, () => {
    const faults = faultsOf({ ...crm, headers: [header(1, name, 'v')] }, after(shop))
    assert.deepEqual(faults, [`header "${name}" of URL 1 cannot be set: the name is reserved`])
  })

for (const [url, pattern] of [
  ['http:/a.example', /not an absolute URL/],
  ['https:a.example', /not an absolute URL/],
  ['a.example/hook', /not an absolute URL/],
  ['//a.example', /not an absolute URL/],
  ['https://', /not an absolute URL/],
  ['', /not an absolute URL/],
  ['javascript:alert(1)', /begins with "javascript:"/],
  ['localhost:3000/x', /begins with "localhost:"/],
  ['https://a.example/a b', /white space/],
  ['https://a.exa\nmple/', /white space/],
  [' https://a.example/', /white space/],
  ['https://token@a.example/', /user name or password/],
  [
    `https://${'a'.repeat(64)}.example/`,
    /host name of more than 253 characters, or more than 63 between two dots/,
  ],
  [`https://${'abcdefghi.'.repeat(25)}test/`, /host name of more than 253 characters/],
] as const)
  test(`the URL ${JSON.stringify(url)} is refused`, () => {
    const faults = faultsOf({ ...crm, urls: [url], headers: [] }, after(shop))
    assert.match(faults.join(), pattern)
  })

test('a gone endpoint is recorded once, and is tried again after it is edited', () => {
  const gone = (at: number): SettingsCommand => ({
    type: 'report_endpoint_gone',
    destinationId: 'crm',
    urlId: 'u1',
    at,
  })
  const goneAt = (state: SettingsAggregate) => destination(state).urls.map((url) => url.goneAt)
  const state = after(shop, crm, gone(5))
  assert.deepEqual(goneAt(state), [5, null])
  assert.deepEqual(decide(gone(6), state), { accepted: true, event: null })
  assert.deepEqual(
    decide({ ...gone(6), urlId: 'u9' } as SettingsCommand, state),
    { accepted: true, event: null },
    'a URL that was taken away meanwhile',
  )
  const enable: SettingsCommand = { type: 'enable_destination', id: 'crm' }
  assert.deepEqual(goneAt(after(shop, crm, gone(5), enable)), [null, null])
  const update: SettingsCommand = { type: 'update_destination', id: 'crm', name: 'Renamed' }
  assert.deepEqual(goneAt(after(shop, crm, gone(5), update)), [null, null])
  const disable: SettingsCommand = { type: 'disable_destination', id: 'crm' }
  assert.deepEqual(goneAt(after(shop, crm, gone(5), disable)), [5, null])
})

test('enabling or disabling without effect makes no event', () => {
  const state = after(shop, crm)
  for (const type of ['enable_source', 'enable_destination'] as const)
    assert.deepEqual(decide({ type, id: type === 'enable_source' ? 'shop' : 'crm' }, state), {
      accepted: true,
      event: null,
    })
  const off = after(
    shop,
    crm,
    { type: 'disable_source', id: 'shop' },
    { type: 'disable_destination', id: 'crm' },
  )
  assert.equal(off.sources.get('shop')!.enabled, false)
  assert.equal(destination(off).enabled, false)
  assert.deepEqual(decide({ type: 'disable_source', id: 'shop' }, off), { accepted: true, event: null })
})

const update = (given: object): SettingsCommand => ({ type: 'update_destination', id: 'crm', ...given })
const fingerprints = (state: SettingsAggregate) =>
  [destination(state).sharedSecret, destination(state).earlierSecret].map(
    (sealed) => sealed?.fingerprint ?? null,
  )

test('an added secret signs and the previous one stays active, and a third one is refused', () => {
  const added = after(shop, crm, update({ addSecret: secret('new!') }))
  assert.deepEqual(fingerprints(added), ['fp-new!', 'fp-s3cr'])
  assert.deepEqual(faultsOf(update({ addSecret: secret('third') }), added), [
    '2 shared secrets are active (fingerprints fp-new!, fp-s3cr): take one away first',
  ])
  assert.deepEqual(faultsOf(update({ addSecret: secret('new!') }), added), [
    'that shared secret is active already',
  ])
  const first = after(shop, { ...crm, sharedSecret: null }, update({ addSecret: secret('new!') }))
  assert.deepEqual(fingerprints(first), ['fp-new!', null])
})

test('a secret is removed by its fingerprint, also together with adding the next; a new one replaces all', () => {
  const both = [shop, crm, update({ addSecret: secret('new!') })]
  assert.deepEqual(fingerprints(after(...both, update({ removeSecrets: ['fp-s3cr'] }))), ['fp-new!', null])
  assert.deepEqual(fingerprints(after(...both, update({ removeSecrets: ['fp-new!'] }))), ['fp-s3cr', null])
  assert.deepEqual(fingerprints(after(...both, update({ removeSecrets: ['fp-s3cr', 'fp-new!'] }))), [
    null,
    null,
  ])
  assert.deepEqual(
    fingerprints(after(...both, update({ removeSecrets: ['fp-s3cr'], addSecret: secret('more') }))),
    ['fp-more', 'fp-new!'],
  )
  assert.deepEqual(fingerprints(after(...both, update({ sharedSecret: secret('sole') }))), ['fp-sole', null])
  assert.deepEqual(fingerprints(after(...both, update({ sharedSecret: null }))), [null, null])
  assert.deepEqual(fingerprints(after(...both, update({ name: 'Other' }))), ['fp-new!', 'fp-s3cr'])
  assert.deepEqual(faultsOf(update({ removeSecrets: ['fp-none'] }), after(...both)), [
    'no shared secret with the fingerprint "fp-none" is active',
  ])
  assert.deepEqual(faultsOf(update({ sharedSecret: null, addSecret: secret('more') }), after(...both)), [
    'a secret either replaces those that there are or goes beside them',
  ])
  assert.deepEqual(faultsOf(update({ addSecret: secret('') }), after(...both.slice(0, 2))), [
    'the shared secret is 0 bytes long, 1-256 are allowed',
  ])
})

test('resealed secrets replace the old ones, and a secret that was changed meanwhile is left alone', () => {
  const resealed = (text: string) => ({ ...secret(text).sealed, keyId: 'k2', iv: 'i2', tag: `t-${text}` })
  const sealed = (text: string) => secret(text, `t-${text}`)
  const shared = sharedSecretPlace('crm')
  const placeOf: Record<string, string> = { a: headerPlace('crm', 'https://b.example/hook', 'x-a') }
  const state = after(
    shop,
    { ...crm, sharedSecret: sealed('s3cret'), headers: [{ urlNumber: 2, name: 'X-A', value: sealed('a') }] },
    update({ addSecret: sealed('new!') }),
    { type: 'report_endpoint_gone', destinationId: 'crm', urlId: 'u1', at: 5 },
  )
  const reseal: SettingsCommand = {
    type: 'reseal_secrets',
    id: 'crm',
    resealed: ['s3cret', 'new!', 'a', 'gone'].map((text) => ({
      place: placeOf[text] ?? shared,
      from: sealed(text).sealed,
      to: resealed(text),
    })),
  }
  const decision = decide(reseal, state)
  assert(decision.accepted && decision.event)
  const resealedState = evolve(state, decision.event)
  assert.deepEqual(destination(resealedState), {
    ...destination(state),
    sharedSecret: resealed('new!'),
    earlierSecret: resealed('s3cret'),
    // It stays gone, because its endpoint was not edited.
    urls: [
      { id: 'u1', url: 'https://a.example/hook', headers: [], goneAt: 5 },
      {
        id: 'u2',
        url: 'https://b.example/hook',
        headers: [{ name: 'X-A', value: resealed('a') }],
        goneAt: null,
      },
    ],
  })
  assert.deepEqual(decide(reseal, resealedState), { accepted: true, event: null }, 'asked again')
  assert.deepEqual(decide({ ...reseal, id: 'nowhere' }, resealedState), { accepted: true, event: null })
  const changed = evolve(state, {
    type: 'destination_updated',
    id: 'crm',
    sharedSecret: sealed('latest').sealed,
  })
  const left = decide(reseal, changed)
  assert(left.accepted && left.event?.type === 'secrets_resealed')
  assert.equal(left.event.sharedSecret, undefined)
  assert.equal(left.event.headers.length, 1)
})

test('options are off by default, change one by one, and are validated', () => {
  const optionsAfter = (...edits: OptionsEdit[]) =>
    destination(after(shop, crm, ...edits.map((options) => update({ options })))).options
  assert.deepEqual(optionsAfter({ types: ['track'] }, { deliverTo: 'every' }, { standardWebhooks: true }), {
    ...defaultOptions,
    standardWebhooks: true,
    types: ['track'],
    events: null,
    deliverTo: 'every',
  })
  assert.deepEqual(
    optionsAfter({ types: ['track'], events: ['A'] }, { types: null, events: null }),
    defaultOptions,
  )
  assert.deepEqual(destination(after(shop, { ...crm, options: { events: ['A'] } })).options, {
    ...defaultOptions,
    events: ['A'],
  })
  const state = after(shop, crm)
  assert.deepEqual(
    faultsOf(update({ options: { types: ['track', 'track', 'tracks'], events: ['', 'A', 'A'] } }), state),
    [
      'call type "track" is named twice',
      'call type "tracks" is none of identify, track, page, screen, group, alias, delete',
      'event 1 is 0 characters long, 1-255 are allowed',
      'event "A" is named twice',
    ],
  )
  assert.deepEqual(faultsOf(update({ options: { types: [], events: [] } }), state).length, 3)
  assert.deepEqual(faultsOf(update({ options: {} }), state), [
    'nothing to change: give a name, sources, URLs, headers, a secret, a login or an option',
  ])
  assert.deepEqual(faultsOf({ ...crm, options: { types: ['page'], events: ['A'] } }, after(shop)), [
    'events are names of track calls, which are not among the types that are sent',
  ])
  assert.equal(
    faultsOf(update({ options: { types: ['page'] } }), after(shop, { ...crm, options: { events: ['A'] } }))
      .length,
    1,
    'the events were chosen before',
  )
})

test('Standard Webhooks need a secret, in whichever order the two are set', () => {
  const message = 'Standard Webhooks are signed, and the destination has no shared secret to sign with'
  const standard = { standardWebhooks: true }
  assert.deepEqual(faultsOf({ ...crm, sharedSecret: null, options: standard }, after(shop)), [message])
  const bare = after(shop, { ...crm, sharedSecret: null })
  assert.deepEqual(faultsOf(update({ options: standard }), bare), [message])
  const signed = after(shop, { ...crm, options: standard })
  assert.deepEqual(faultsOf(update({ sharedSecret: null }), signed), [message])
  assert.deepEqual(faultsOf(update({ removeSecrets: ['fp-s3cr'] }), signed), [message])
  const off = after(
    shop,
    { ...crm, options: standard },
    update({ sharedSecret: null, options: { standardWebhooks: false } }),
  )
  assert.equal(destination(off).options.standardWebhooks, false)
})

test('each secret is sealed for its place: its purpose, destination and URL', () => {
  const places: string[] = []
  const noting = (text: string): NewSecret => ({
    ...secret(text),
    seal(place) {
      places.push(place)
      return secret(text).sealed
    },
  })
  const state = after(
    shop,
    {
      ...crm,
      urls: ['https://A.example:443/hook#x'],
      headers: [{ urlNumber: 1, name: 'X-Token', value: noting('t') }],
      sharedSecret: noting('s'),
    },
    update({ addSecret: noting('s2') }),
    // The header stays with its URL, in whatever spelling, and is not sealed again.
    update({ urls: ['https://b.example/', 'https://a.example/hook'] }),
    update({ headers: [{ urlNumber: 1, name: 'x-token', value: noting('t2') }] }),
  )
  const sorted = [...places].sort()
  assert.deepEqual(sorted, [
    headerPlace('crm', 'https://a.example/hook', 'X-Token'),
    headerPlace('crm', 'https://b.example/', 'X-Token'),
    sharedSecretPlace('crm'),
    sharedSecretPlace('crm'),
  ])
  assert.equal(new Set(sorted).size, 3)
  assert.deepEqual(
    placedSecrets(destination(state)).map(({ place }) => place),
    [
      sharedSecretPlace('crm'),
      sharedSecretPlace('crm'),
      headerPlace('crm', 'https://b.example/', 'x-token'),
      headerPlace('crm', 'https://a.example/hook', 'x-token'),
    ],
  )
})

const pauseCommand = (pauseId: string, at: number, until: number | null = null): SettingsCommand => ({
  type: 'pause_destination',
  id: 'crm',
  pauseId,
  at,
  until,
})
const resumeCommand = (pauseId: string | null, at: number): SettingsCommand => ({
  type: 'resume_destination',
  id: 'crm',
  pauseId,
  at,
})

test('a pause keeps its id and beginning when it gets another end, and lasts through other changes', () => {
  const paused = after(shop, crm, pauseCommand('p', 100, 200))
  assert.deepEqual(destination(paused).pause, { id: 'p', since: 100, until: 200 })
  const state = after(
    shop,
    crm,
    pauseCommand('p', 100, 200),
    pauseCommand('q', 150, 900),
    { type: 'disable_destination', id: 'crm' },
    { type: 'update_destination', id: 'crm', name: 'New' },
    { type: 'enable_destination', id: 'crm' },
  )
  assert.deepEqual(destination(state).pause, { id: 'p', since: 100, until: 900 })
  assert.deepEqual(decide(pauseCommand('r', 160, 900), state), { accepted: true, event: null })
  const open = after(shop, crm, pauseCommand('p', 100, 200), pauseCommand('q', 150))
  assert.deepEqual(destination(open).pause, { id: 'p', since: 100, until: null })
})

test('a pause may end with a rate for what it held, within the bounds of replays', () => {
  const paused = after(shop, crm, pauseCommand('p', 100))
  const withRate = (rate: number) => ({ ...resumeCommand('p', 200), rate }) as SettingsCommand
  const state = after(shop, crm, pauseCommand('p', 100), withRate(2.5))
  assert.deepEqual(destination(state).endedPauses, [{ id: 'p', since: 100, endedAt: 200, rate: 2.5 }])
  for (const rate of [0, -1, 1_000_000, NaN]) {
    const decision = decide(withRate(rate), paused)
    assert.ok(!decision.accepted, String(rate))
    assert.deepEqual(
      decision.faults.map(({ field }) => field),
      ['rate'],
    )
  }
})

test('of several that end one pause, the first does; one that names another pause ends nothing', () => {
  const paused = after(shop, crm, pauseCommand('p', 100))
  assert.deepEqual(decide(resumeCommand('other', 200), paused), { accepted: true, event: null })
  const state = after(shop, crm, pauseCommand('p', 100), resumeCommand('p', 200), resumeCommand('p', 201))
  assert.equal(destination(state).pause, null)
  assert.deepEqual(destination(state).endedPauses, [{ id: 'p', since: 100, endedAt: 200, rate: null }])
  assert.deepEqual(decide(resumeCommand(null, 300), state), { accepted: true, event: null })
  const day = 86_400_000
  const later = after(
    shop,
    crm,
    pauseCommand('p', 100),
    resumeCommand(null, 200),
    pauseCommand('q', 41 * day),
    resumeCommand(null, 41 * day + 1),
  )
  assert.deepEqual(
    destination(later).endedPauses.map(({ id }) => id),
    ['q'],
  )
})

test('a pause of nothing, one that would be over, and one of more than a year are refused', () => {
  const state = after(shop, crm)
  assert.deepEqual(faultsOf({ ...pauseCommand('p', 1), id: 'nope' } as SettingsCommand, state), [
    'destination "nope" does not exist',
  ])
  assert.deepEqual(faultsOf(pauseCommand('p', 100, 100), state), ['the pause would end before it begins'])
  assert.deepEqual(faultsOf(pauseCommand('p', 0, 367 * 86_400_000), state), [
    'a pause with an end lasts at most 366 days',
  ])
})

test('the built-in source can be subscribed to, and nothing else can be done with it', () => {
  const state = after({ ...crm, sourceIds: ['postrider'] })
  assert.deepEqual(state.destinations.get('crm')?.sourceIds, ['postrider'])
  const refused = [
    { ...shop, id: 'postrider' },
    { type: 'update_source', id: 'postrider', name: 'N' },
    { type: 'disable_source', id: 'postrider' },
    { type: 'enable_source', id: 'postrider' },
  ] as const
  for (const command of refused) assert.match(faultsOf(command, state)[0]!, /is built in/)
  const audience = {
    type: 'create_computation',
    kind: 'audience',
    id: 'vip',
    name: 'VIP',
    sourceId: 'postrider',
  } as const
  assert.match(faultsOf(audience, state)[0]!, /source "postrider" does not exist/)
})

test('a source that somebody made under the id of the built-in one stays theirs', () => {
  const own = { id: 'postrider', name: 'Mine', writeKey: 'k', enabled: true }
  const state = evolve(initialSettings, { type: 'source_created', source: own })
  const decision = decide({ type: 'disable_source', id: 'postrider' }, state)
  assert.ok(decision.accepted && decision.event?.type === 'source_disabled')
})

test('a URL of a host that the deciding process does not allow is refused when it is set, and no later change of it is', () => {
  const hostRefusal = (hostname: string) => (hostname === '10.0.0.5' ? 'the address is not allowed' : null)
  const faults = (command: SettingsCommand, state: SettingsAggregate) => {
    const decision = decide(command, state, { ...noRules, hostRefusal })
    return decision.accepted ? [] : decision.faults
  }
  const inside = { ...crm, urls: ['https://a.example/', 'http://10.0.0.5/hook?token=t'], headers: [] }
  const refusal = [{ code: 'usage', field: 'urls', message: 'URL 2: the address is not allowed' }]
  const update: SettingsCommand = { type: 'update_destination', id: 'crm', urls: inside.urls }
  assert.deepEqual(faults(inside, after(shop)), refusal)
  assert.deepEqual(faults(update, after(shop, crm)), refusal)
  // What the log holds stays, whoever allowed it.
  const before = after(shop, inside)
  const changes: SettingsCommand[] = [
    { type: 'update_destination', id: 'crm', name: 'Inside' },
    { type: 'update_destination', id: 'crm', headers: [header(2, 'X-Team', 'blue')] },
    { type: 'update_destination', id: 'crm', urls: ['http://10.0.0.5/hook?token=t', 'https://c.example/'] },
  ]
  for (const command of changes) assert.deepEqual(faults(command, before), [])
  assert.deepEqual(
    faults({ type: 'update_destination', id: 'crm', urls: ['http://10.0.0.5/other'] }, before),
    [{ ...refusal[0], message: 'URL 1: the address is not allowed' }],
  )
})

test('a schedule that the deployment cannot keep is refused when it is set, and one that stands is left alone', () => {
  const retryPolicy = { tiers: [{ name: '10s', delayMs: 10_000 }], windowMs: 60_000 }
  const faults = (options: OptionsEdit, state: SettingsAggregate, rules = { ...noRules, retryPolicy }) => {
    const decision = decide({ type: 'update_destination', id: 'crm', options }, state, rules)
    return decision.accepted ? [] : decision.faults.map(({ field }) => field)
  }
  const before = after(shop, crm)
  assert.deepEqual(faults({ retryTiers: ['10s'], retryWindow: '30s' }, before), [])
  assert.deepEqual(faults({ retryTiers: ['20s'], retryWindow: '2m' }, before), ['retryWindow', 'retryTiers'])
  assert.deepEqual(faults({ retryWindow: '5s' }, before), ['retryWindow'])
  const created = decide({ ...crm, options: { retryTiers: ['20s'] } }, after(shop), {
    ...noRules,
    retryPolicy,
  })
  assert.equal(created.accepted, false)
  // A process with other tiers set it.
  const stands = after(shop, { ...crm, options: { retryTiers: ['20s'] } })
  assert.deepEqual(faults({ traceContext: true }, stands), [])
  assert.deepEqual(faults({ retryTiers: null }, stands), [])
})

test('strict order is refused where each URL has a delivery of its own, and with bounds that are none', () => {
  const faults = (options: OptionsEdit) => {
    const decision = decide({ type: 'update_destination', id: 'crm', options }, after(shop, crm))
    return decision.accepted ? [] : decision.faults.map(({ field, message }) => `${field}: ${message}`)
  }
  assert.deepEqual(faults({ order: 'strict', orderLimit: 10, orderWait: '10m' }), [])
  assert.deepEqual(faults({ order: 'strict', deliverTo: 'every' }), [
    'order: strict order needs one delivery for all URLs: deliver to any',
  ])
  assert.deepEqual(faults({ orderLimit: 0, orderWait: '0s' }), [
    'orderLimit: 0 is not a whole number from 1 to 10000',
    'orderWait: "0s" is no duration such as 1h',
  ])
})
