// What a token that is limited to `shop` and `crm` gets of every operation. The operations are the real ones.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import pino from 'pino'
import { openConsoleServer } from '../../src/console/server.ts'
import type { Reach } from '../../src/core/access/reach.ts'
import type { Role } from '../../src/core/access/roles.ts'
import type { SettingsCommand } from '../../src/core/settings/commands.ts'
import { evolve } from '../../src/core/settings/events.ts'
import { initialSettings } from '../../src/core/settings/settings.ts'
import { limitedState } from '../../src/operators/limited.ts'
import { operations } from '../../src/operators/operations.ts'
import { roleOf } from '../../src/operators/operation.ts'
import type { ConsoleServices } from '../../src/operators/services.ts'
import { maxWatched, WaitingInTiers, type WaitingReader } from '../../src/operators/statistics/waiting.ts'
import { hashOfToken, newToken } from '../../src/operators/tokens/tokens.ts'
import { isOthers, now, servicesOfTwo } from '../support/services-of-two.ts'

interface Asked {
  /** Method, path and query. */
  at: string
  json?: unknown
}

async function underTest(t: TestContext, given: Partial<ConsoleServices> = {}) {
  const tokens = new Map<string, { token: string; role: Role; only: Reach }>()
  const commands: SettingsCommand[] = []
  const only = ['shop', 'crm']
  for (const [id, role, reach] of [
    ['reader', 'reader', only],
    ['operator', 'operator', only],
    ['all', 'operator', null],
  ] as const) {
    const token = newToken()
    tokens.set(id, { token, role, only: reach })
    commands.push({ type: 'create_token', id, role, only: reach, hash: hashOfToken(token, reach), at: now })
  }
  const { services, deeds } = servicesOfTwo(commands)
  const server = await openConsoleServer({
    port: 0,
    host: '127.0.0.1',
    token: 'an-admin-token-of-a-test-0123456789',
    version: '1',
    operations,
    services: () => ({ ...services, ...given }),
    counts: { request: () => {} },
    log: pino({ level: 'error' }, { write: (line) => assert.fail(line) }),
  })
  t.after(() => server.close(0))
  const ask = async (who: string, { at, json }: Asked) => {
    const [method, path] = at.split(' ') as [string, string]
    const response = await fetch(`http://127.0.0.1:${server.port}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${tokens.get(who)!.token}`,
        ...(json !== undefined && { 'content-type': 'application/json' }),
      },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    })
    return { status: response.status, text: await response.text() }
  }
  return { ask, deeds }
}

/** How each operation is asked; `{source}` and so on are filled in, once with what is the holder's and once with what is not. */
const asked: Record<string, Asked[]> = {
  listSources: [{ at: 'GET /sources' }],
  showSource: [{ at: 'GET /sources/{source}' }],
  tailSource: [{ at: 'GET /sources/{source}/tail' }],
  listEvents: [{ at: 'GET /events?source={source}' }],
  showEvent: [{ at: 'GET /events/fields?source={source}&name=Event%20of%20{source}' }],
  exportEvents: [
    { at: 'GET /events/export?format=json-schema&source={source}' },
    { at: 'GET /events/export?format=asyncapi&destination={destination}' },
  ],
  listPlans: [{ at: 'GET /plans' }],
  showPlan: [{ at: 'GET /plans/{source}-plan' }],
  listPlanViolations: [
    { at: 'GET /plan-violations' },
    { at: 'GET /plan-violations?source={source}' },
    { at: 'GET /plan-violations?plan={source}-plan&limit=1' },
  ],
  listDestinations: [{ at: 'GET /destinations' }, { at: 'GET /destinations?health=true' }],
  showDestination: [{ at: 'GET /destinations/{destination}?health=true' }],
  previewDestination: [{ at: 'POST /destinations/{destination}/preview', json: { name: 'New' } }],
  listDestinationCalls: [
    { at: 'GET /destinations/{destination}/calls?step=waiting' },
    { at: 'GET /destinations/{destination}/calls?step=skipped' },
  ],
  testDestination: [
    { at: 'POST /destinations/{destination}/test', json: {} },
    { at: 'POST /destinations/{destination}/test', json: { messageId: 'm-{source}' } },
  ],
  pauseDestination: [{ at: 'POST /destinations/{destination}/pause', json: {} }],
  resumeDestination: [{ at: 'POST /destinations/{destination}/resume', json: {} }],
  listAudiences: [{ at: 'GET /audiences' }],
  showAudience: [{ at: 'GET /audiences/{source}-audience' }],
  listTraits: [{ at: 'GET /traits' }],
  showTrait: [{ at: 'GET /traits/{source}-trait' }],
  showErasuresOfUser: [{ at: 'GET /users/user-{source}/erasures' }],
  listDeadLetters: [{ at: 'GET /dead-letters' }, { at: 'GET /dead-letters?destination={destination}' }],
  groupDeadLetters: [
    { at: 'GET /dead-letters/groups' },
    { at: 'GET /dead-letters/groups?destination={destination}' },
  ],
  showDeadLetter: [{ at: 'GET /dead-letters/{letter}' }, { at: 'GET /dead-letters/d-0:{destination}' }],
  listReplays: [{ at: 'GET /replays' }, { at: 'GET /replays?destination={destination}' }],
  startReplay: [
    { at: 'POST /replays', json: { destinationId: '{destination}', since: '1h' } },
    { at: 'POST /replays', json: { destinationId: '{destination}', messageId: 'm-{source}' } },
    { at: 'POST /replays', json: { deadLetters: { destination: ['{destination}'] } } },
    {
      at: 'POST /replays',
      json: {
        deadLetters: { kinds: [{ reason: 'rejected', status: 400, destinationId: '{destination}' }] },
      },
    },
  ],
  dryRunReplay: [{ at: 'POST /replays/dry-run', json: { destinationId: '{destination}', since: '1h' } }],
  showReplay: [{ at: 'GET /replays/replay-{short}' }],
  pauseReplay: [{ at: 'POST /replays/replay-{short}/pause', json: {} }],
  resumeReplay: [{ at: 'POST /replays/replay-{short}/resume', json: {} }],
  cancelReplay: [{ at: 'POST /replays/replay-{short}/cancel', json: {} }],
  showMessage: [{ at: 'GET /messages/m-{source}' }],
  showMessageBody: [{ at: 'GET /messages/m-{source}/body' }],
  showMessageResponses: [{ at: 'GET /messages/m-{source}/responses' }],
  listMessageCalls: [{ at: 'POST /messages/calls', json: { messageIds: ['m-{source}'] } }],
  listUserMessages: [{ at: 'GET /users/user-{source}/messages' }],
  listProblems: [{ at: 'GET /problems' }],
  overview: [{ at: 'GET /overview?window=1h' }],
  listDestinationFigures: [
    { at: 'GET /overview/destinations?hours=true&window=1h' },
    { at: 'GET /overview/destinations?id={destination}' },
  ],
  totalStats: [{ at: 'GET /stats' }],
  destinationStats: [{ at: 'GET /destinations/{destination}/stats' }],
  sourceStats: [{ at: 'GET /sources/{source}/stats' }],
  listAttempts: [{ at: 'GET /attempts' }, { at: 'GET /attempts?destination={destination}' }],
  showSession: [{ at: 'GET /session' }],
  endSession: [{ at: 'DELETE /session' }],
}

const own = { source: 'shop', destination: 'crm', letter: '0-0', short: 'crm' }
const others = { source: 'zeta', destination: 'zeta-crm', letter: '11-0', short: 'zeta' }
/** There is none of these. */
const nobodys = { source: 'none', destination: 'none-such', letter: '99-9', short: 'none' }
type Names = typeof own

const filled = (text: string, names: Names): string =>
  text.replace(/\{(source|destination|letter|short)\}/g, (_, name: keyof Names) => names[name])
const asking = (template: Asked, names: Names): Asked => ({
  at: filled(template.at, names),
  ...(template.json !== undefined && {
    json: JSON.parse(filled(JSON.stringify(template.json), names)) as unknown,
  }),
})
const takesNames = (template: Asked) => /\{(source|destination|letter|short)\}/.test(JSON.stringify(template))

test('every operation says what it does for a limited token: without that it is refused', () => {
  for (const operation of operations) {
    const { id, isOpen, forLimited } = operation
    if (isOpen) continue
    if (roleOf(operation) === 'admin')
      assert.notEqual(forLimited, 'part', `${id} is for admins, who are never limited`)
    else assert.ok(forLimited !== undefined, `${id} says what it does for a limited token`)
    assert.equal(Object.hasOwn(asked, id), forLimited === 'part', `${id} is asked below`)
  }
})

test('no operation shows a limited token anything of another’s, or does anything to it', async (t) => {
  const { ask, deeds } = await underTest(t)
  for (const [id, templates] of Object.entries(asked)) {
    const operation = operations.find((each) => each.id === id)!
    const who = roleOf(operation) === 'reader' ? ['reader', 'operator'] : ['operator']
    for (const template of templates)
      for (const holder of who) {
        const label = `${holder}: ${JSON.stringify(template)}`
        const mine = await ask(holder, asking(template, own))
        assert.ok(mine.status < 300, `${label} ${mine.text}`)
        assert.doesNotMatch(mine.text, /zeta|7[,.]?777/i, label)
        if (!takesNames(template)) continue
        // Somebody else's is as what there is not.
        const done = deeds.length
        const theirs = await ask(holder, asking(template, others))
        const nothing = await ask(holder, asking(template, nobodys))
        const named = (text: string, { source, destination, letter, short }: Names) =>
          [destination, letter, source, short].reduce((rest, name) => rest.replaceAll(name, '…'), text)
        assert.deepEqual(
          [theirs.status, named(theirs.text, others)],
          [nothing.status, named(nothing.text, nobodys)],
          label,
        )
        assert.deepEqual(deeds.slice(done), [], label)
      }
  }
  assert.deepEqual(
    deeds.filter(({ to }) => isOthers(to)),
    [],
  )
  assert.ok(deeds.length > 8, 'what is the holder’s is done')
})

test('what a limited token is not shown is there: one that is not limited sees it', async (t) => {
  const { ask } = await underTest(t)
  const without = new Set(['showSession', 'endSession', 'testDestination', 'dryRunReplay'])
  for (const [id, templates] of Object.entries(asked)) {
    if (without.has(id)) continue
    const { status, text } = await ask('all', asking(templates[0]!, others))
    assert.ok(status < 300, `${id} ${text}`)
    assert.match(text, /zeta|7777/, id)
  }
})

test('the settings of a limited token have no address of an alert', () => {
  const alert = { id: 'ops', name: 'On call', to: ['ops@example.com'], events: null, enabled: true }
  const state = evolve(initialSettings, { type: 'mail_alert_created', ...alert })
  assert.equal(state.mailAlerts.size, 1)
  assert.equal(limitedState(['crm'], state).mailAlerts.size, 0)
})

test('what is about the whole deployment is refused to a limited token, with a clear message', async (t) => {
  const { ask, deeds } = await underTest(t)
  const refused = operations.filter(
    (operation) => !operation.isOpen && roleOf(operation) !== 'admin' && operation.forLimited !== 'part',
  )
  assert.ok(refused.length >= 10)
  for (const { id, method, path } of refused) {
    const at = `${method} ${path.replace(/\{\w+\}/g, 'crm')}`
    const answer = await ask('operator', { at, ...(method !== 'GET' && { json: {} }) })
    assert.equal(answer.status, 403, id)
    const { message } = JSON.parse(answer.text) as { message: string }
    assert.equal(message, `token "operator" is limited to shop, crm, and ${id} is about the whole deployment`)
  }
  // Dead letters are not chosen by ids, which say nothing of whose they are.
  for (const chosen of [
    { all: true },
    { ids: ['0-0'] },
    { reason: ['rejected'] },
    { destination: ['crm', 'none'] },
  ]) {
    const answer = await ask('operator', { at: 'POST /replays', json: { deadLetters: chosen } })
    assert.ok([400, 404].includes(answer.status), JSON.stringify(chosen))
  }
  assert.deepEqual(deeds, [])
})

/** Retries were scheduled, and none waits: of `crm` 3, of `zeta-crm` 7,777. */
async function withMissing(clock: () => number): Promise<Partial<ConsoleServices>> {
  const missing = new Map([
    ['crm', 3],
    ['zeta-crm', 7_777],
  ])
  const pointsOf = (count: number) => [{ at: now - 60_000, counts: { planned: count, retried: count } }]
  const statistics = {
    ...(await servicesOfTwo().services.statistics()),
    series: ({ kind, id }: { kind: string; id: string }) =>
      kind === 'destination' && missing.has(id) ? pointsOf(missing.get(id)!) : [],
    totals: (kind: string) => (kind === 'destination' ? pointsOf(7_780) : []),
    deadLetters: () => [],
  }
  const reader = { count: async () => new Map() } as unknown as WaitingReader
  return {
    statistics: async () => statistics as unknown as Awaited<ReturnType<ConsoleServices['statistics']>>,
    waiting: new WaitingInTiers(reader, clock),
  }
}

test('what is unaccounted becomes sure for one token and for a limited one that ask in turn, for each what it sees', async (t) => {
  let clock = 0
  const { ask } = await underTest(t, await withMissing(() => clock))
  const unaccounted = async (who: string) => {
    const { text } = await ask(who, { at: 'GET /stats' })
    return (JSON.parse(text) as { pipeline: { unaccounted: number | null } }).pipeline.unaccounted
  }
  for (; clock < 20_000; clock += 5_000)
    assert.deepEqual([await unaccounted('all'), await unaccounted('reader')], [null, null])
  for (; clock <= 40_000; clock += 5_000)
    assert.deepEqual([await unaccounted('all'), await unaccounted('reader')], [7_780, 3])
})

test('what is asked for all the time stays sure, however much else is asked for once', () => {
  let clock = 0
  const waiting = new WaitingInTiers({} as WaitingReader, () => clock)
  for (; clock < 20_000; clock += 1_000) {
    assert.equal(waiting.sure('all', 3, 'same'), null)
    for (let other = 0; other < maxWatched / 2; other++) waiting.sure(`${clock}/${other}`, 3, 'same')
  }
  assert.equal(waiting.sure('all', 3, 'same'), 3)
})
