import assert from 'node:assert/strict'
import { test } from 'node:test'
import { computationsOf } from '../../support/computations.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { startReceiver, type ReceivedRequest, type Receiver } from '../../support/receivers.ts'
import { connect } from '../../support/calls/samples.ts'

interface Identify {
  type: string
  userId: string
  timestamp: string
  traits: Record<string, unknown>
  context: unknown
  messageId: string
}

const bodyOf = (request: ReceivedRequest) => request.json() as unknown as Identify
/** `ada true`, sorted by user; in order for one user. */
const brief = (bodies: readonly Identify[], key: string) =>
  bodies
    .toSorted((a, b) => (a.userId < b.userId ? -1 : a.userId > b.userId ? 1 : 0))
    .map(({ userId, traits }) => `${userId} ${JSON.stringify(traits[key])}`)

/** What arrived since the last call, once there is `count` of it. */
function arrivals(receiver: Receiver): (count: number) => Promise<Identify[]> {
  let seen = 0
  return async (count) => {
    const all = await receiver.waitFor(seen + count, 30_000)
    const fresh = all.slice(seen)
    seen = all.length
    assert.equal(fresh.length, count)
    return fresh.map(bodyOf)
  }
}

test('audiences and computed traits, from a list to a receiver', async (t) => {
  const deployment = await deploy(t)
  const forwarder = await deployment.forwarder()
  const receiver = await startReceiver(t, { secret: 's3cret' })
  await connect(deployment, forwarder, { id: 'shop', urls: [receiver.url] })
  const { open, create, sync } = await computationsOf(t, deployment)
  const arrived = arrivals(receiver)
  const ids = new Set<string>()
  const fresh = (bodies: readonly Identify[]) => {
    for (const { messageId } of bodies) {
      assert(!ids.has(messageId), 'a message of its own')
      ids.add(messageId)
    }
  }

  await t.test('the first sync sends every member, signed and word for word', async () => {
    await create('audience', 'vip', 'VIP Größe')
    const users = ['ada', 'größe 🙂', 'a/b', `"quoted" \\ {}`, 'x'.repeat(1_024)]
    const began = Date.now()
    await sync('audience', 'vip', users)
    const bodies = await arrived(5)
    fresh(bodies)
    assert.deepEqual(bodies.map(({ userId }) => userId).toSorted(), users.toSorted())
    for (const { messageId, timestamp, userId, ...rest } of bodies) {
      assert(users.includes(userId) && messageId.length > 20)
      assert(Date.parse(timestamp) >= began - 1 && Date.parse(timestamp) <= Date.now())
      assert.deepEqual(rest, {
        version: 1,
        type: 'identify',
        traits: { vip_größe: true },
        context: {
          personas: {
            computation_class: 'audience',
            computation_id: 'vip',
            computation_key: 'vip_größe',
            namespace: 'shop',
            space_id: 'shop',
          },
        },
      })
    }
    assert(receiver.requests.every(({ signature }) => signature === 'valid'))
    const [record] = await deployment.read(deployment.topics.calls)
    const call = await deployment.codecs.calls.decode(record!.value)
    assert.equal(call.integrations, '{"All":false,"Webhooks":true}')
    await sync('audience', 'vip', ['ada'])
    const left = await arrived(4)
    fresh(left)
    assert(left.every(({ traits }) => traits.vip_größe === false))
  })

  await t.test(
    'a later sync sends only changes, and joining, leaving and joining again are three messages',
    async () => {
      await create('audience', 'buyers', 'Buyers')
      await sync('audience', 'buyers', ['a', 'b', 'c'])
      const first = await arrived(3)
      await sync('audience', 'buyers', ['d', 'c', 'b'])
      const second = await arrived(2)
      assert.deepEqual(await sync('audience', 'buyers', ['b', 'c', 'd']), {
        syncId: null,
        given: 3,
        entered: 0,
        left: 0,
        resumed: 0,
      })
      await open.sync('audience', 'buyers', 'change', changes(['a', 'b'], ['c', 'nobody']))
      const third = await arrived(2)
      assert.deepEqual(brief([...first, ...second, ...third], 'buyers'), [
        'a true',
        'a false',
        'a true',
        'b true',
        'c true',
        'c false',
        'd true',
      ])
      fresh([...first, ...second, ...third])
      assert.equal(await open.count('audience', 'buyers'), 3)
    },
  )

  await t.test('a deleted audience sends false to its members if asked to, and else nothing', async () => {
    await create('audience', 'quiet', 'Quiet')
    await create('audience', 'loud', 'Loud')
    await sync('audience', 'quiet', ['a', 'b'])
    await sync('audience', 'loud', ['a', 'b', 'c'])
    fresh(await arrived(5))
    assert.deepEqual(await open.remove('audience', 'quiet', false), { notified: 0 })
    assert.deepEqual(await open.remove('audience', 'loud', true), { notified: 3 })
    const farewell = await arrived(3)
    fresh(farewell)
    assert.deepEqual(brief(farewell, 'loud'), ['a false', 'b false', 'c false'])
    const records = await deployment.read(deployment.topics.memberships)
    const last = new Map(records.map(({ key, value }) => [key!.toString(), value]))
    assert.equal(last.get('quiet/a'), null)
    assert.equal(last.get('loud/c'), null)
    await assert.rejects(sync('audience', 'loud', ['a']), { code: 'not_found', message: /was deleted/ })
    await create('audience', 'loud2', 'Loud')
  })

  await t.test(
    'a computed trait is sent when its value changes, and as null when it is removed',
    async () => {
      await create('trait', 'ltv', 'Lifetime Value')
      const values = (given: Record<string, string>) =>
        Object.entries(given).map(
          ([userId, value]) => `{"userId":${JSON.stringify(userId)},"value":${value}}`,
        )
      await sync(
        'trait',
        'ltv',
        values({
          a: '1.50',
          b: '{"x": [1], "y": "z z"}',
          c: '"text"',
          d: 'null',
          e: '12345678901234567890',
          f: 'false',
          g: '0',
          h: '[]',
        }),
      )
      const first = await arrived(7)
      fresh(first)
      const bytes = receiver.requests.map(({ body }) => body.toString())
      assert(bytes.some((body) => body.includes('"traits":{"lifetime_value":1.5}')))
      assert(bytes.some((body) => body.includes('"traits":{"lifetime_value":12345678901234567890}')))
      assert.deepEqual(first.find(({ userId }) => userId === 'b')!.traits, {
        lifetime_value: { x: [1], y: 'z z' },
      })
      // The same values in another spelling and order are no change.
      await sync(
        'trait',
        'ltv',
        values({
          h: ' [ ] ',
          e: '12345678901234567891',
          b: '{"y":"z\\u0020z","x":[1.0]}',
          a: '15e-1',
          c: 'null',
          f: '0',
          d: 'null',
        }),
      )
      const second = await arrived(4)
      fresh(second)
      assert.deepEqual(brief(second, 'lifetime_value'), ['c null', 'e 12345678901234567000', 'f 0', 'g null'])
      assert.equal(second[0]!.context && JSON.stringify(second[0]!.context).includes('"trait"'), true)
      assert.equal(await open.count('trait', 'ltv'), 5)
      await open.remove('trait', 'ltv', true)
      const gone = await arrived(5)
      fresh(gone)
      assert(gone.every(({ traits }) => traits.lifetime_value === null))
    },
  )

  await t.test('nothing else was sent', async () => {
    const end = someCall({ sourceId: 'shop', messageId: 'the end', userId: 'z' })
    await deployment.produce([end])
    assert.equal((await arrived(1))[0]!.messageId, 'the end')
  })
})

async function* changes(added: string[], removed: string[]) {
  yield { users: added, values: null, member: true, list: 'added', line: 1 }
  yield { users: removed, values: null, member: false, list: 'removed', line: 1 }
}
