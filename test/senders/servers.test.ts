// SDKs of servers, each in the small program of its folder, as its registry has it: only its address is another.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test, type TestContext } from 'node:test'
import { collected, startCollector } from '../support/calls/collectors.ts'
import { deploy, type Deployment } from '../support/deployment/deployment.ts'
import { codeBlocks, readPage } from '../support/docs.ts'
import { needed } from '../support/ops/tools.ts'
import { startReceiver } from '../support/receivers.ts'
import { createAuthority } from '../support/secured/certificates.ts'
import { ownAddress, startFront, type Front, type Refusal } from '../support/senders/front.ts'
import { senders, started, toolsOf, trusting, type Sender } from '../support/senders/programs.ts'
import type { Watched } from '../support/senders/watched.ts'
import { until } from '../support/until.ts'

/** What arrives of each type, beside what an SDK adds to every call. */
const arrived: Record<string, object> = {
  identify: { userId: 'u-1', traits: { plan: 'pro', name: 'Jürgen 🚲' } },
  track: { userId: 'u-1', event: 'Order Completed', properties: { total: 12.5, note: '日本' } },
  page: { userId: 'u-1', name: 'Products', properties: { url: 'https://shop.example/products' } },
  screen: { userId: 'u-1', name: 'Home', properties: { from: 'start' } },
  group: { userId: 'u-1', groupId: 'g-1', traits: { seats: 5 } },
  alias: { 'User ID': 'u-2', 'Previous ID': 'u-1' },
}

/** Some SDKs wait half a minute between two tries, or double what they wait nine times. */
const longMs = 180_000
/** An SDK for apps sends every half a minute. */
const twoSendsMs = 75_000

interface Given {
  refusals?: Refusal[]
  isAway?: boolean
  isEnabled?: boolean
  writeKey?: string
}

/** A collector with a front before it, and the program that sends to it. */
async function underTest(t: TestContext, sender: Sender, { isEnabled = true, ...given }: Given = {}) {
  const receiver = await startReceiver(t, { secret: 's3cret' })
  const deployment = await deploy(t, { TRUSTED_PROXIES: '127.0.0.1/32' })
  // A key of its own: analytics-kotlin keeps what it did not send in a folder of the key.
  const source = `shop-${randomUUID()}`
  await deployment.destination({ source, urls: [receiver.url] })
  if (!isEnabled) await deployment.settings.execute({ type: 'disable_source', id: source })
  const collector = await startCollector(deployment)
  const authority = sender.isForApps ? await createAuthority(t) : null
  const address = ownAddress()
  const tls = await authority?.issue({ addresses: [address] })
  const front = await startFront(t, collector, { tls, address, ...given })
  const program = await started(t, sender, {
    COLLECTOR: tls ? front.host : `http://${front.host}`,
    WRITE_KEY: given.writeKey ?? `key-of-${source}`,
    ...(authority && (await trusting(authority.caFile))),
  })
  return { receiver, deployment, front, program }
}

/** That it asked the front, and nobody else. */
async function assertAskedOnly(program: Watched, front: Front): Promise<void> {
  assert.deepEqual([...new Set(await program.asked())], [front.host])
}

const onEveryCall = ['version', 'timestamp', 'messageId', 'context', 'anonymousId', 'integrations']

/** Without what every call has. */
function ownFields<T extends object>(body: T): T {
  return Object.fromEntries(Object.entries(body).filter(([key]) => !onEveryCall.includes(key))) as T
}

/**
 * How it ended. One that runs on is ended once the front gave that many answers to its calls. `mayKeep`: or once it asked
 * for its settings and let two sends pass, for then it keeps its calls.
 */
async function endOf(
  { isForApps }: Sender,
  program: Watched,
  front: Front,
  { answers, mayKeep = false }: { answers: number; mayKeep?: boolean },
) {
  if (isForApps) {
    let askedAt = Infinity
    await until(
      async () => {
        if (front.answers.length >= answers) return true
        if (mayKeep && askedAt === Infinity && (await program.asked()).length > 0) askedAt = performance.now()
        return performance.now() > askedAt + twoSendsMs
      },
      longMs,
      `answer ${answers}`,
    )
    program.endInput()
  }
  return program.end(longMs)
}

/** The types of the calls that it sent: all of them, or those that docs/senders.md says. */
function sentBy({ types, mayLose }: Sender, { accepted }: Front): string[] {
  const lost = types.filter((type) => !accepted.includes(type))
  assert.ok(lost.length <= mayLose, `not sent: ${lost}`)
  assert.equal(accepted.length, types.length - lost.length)
  return accepted
}

/** That each call that was sent is in Kafka, once. */
async function assertCollected(deployment: Deployment, sent: string[]): Promise<void> {
  const calls = await collected(deployment)
  assert.deepEqual(calls.map(({ type }) => type).toSorted(), sent.toSorted())
  assert.equal(new Set(calls.map(({ messageId }) => messageId)).size, sent.length)
}

const byType = (calls: { type: string }[]) => calls.toSorted((a, b) => (a.type < b.type ? -1 : 1))

for (const { name, sdk, main, pin } of senders)
  test(`${sdk}: docs/senders.md shows lines of the program that is run, and its version`, () => {
    const page = 'docs/senders.md'
    const linesOf = (text: string) => text.split('\n').map((line) => line.trim())
    const program = linesOf(readPage(`test/senders/${name}/${main}`))
    const shown = codeBlocks(name, [page]).flatMap(linesOf)
    assert.ok(shown.length > 1)
    assert.deepEqual(
      shown.filter((line) => !program.includes(line)),
      [],
    )
    const [file, text] = pin
    const row = readPage(page)
      .split('\n')
      .find((line) => line.replaceAll('`', '').startsWith(`| [${sdk}](`))
    const version = row?.split('|')[2]!.trim()
    assert.ok(readPage(`test/senders/${name}/${file}`).includes(`${text}${version}`), `${sdk} ${version}`)
  })

// What an SDK waits before it sends again is most of the time that this takes.
suite('SDKs of servers', { concurrency: 6 }, () => {
  for (const sender of senders) {
    const { sdk, isForApps } = sender
    const { skip } = needed(...toolsOf(sender))

    test(
      `${sdk}: every call arrives, signed, with its values and its time, and nobody else is asked`,
      {
        skip,
      },
      async (t) => {
        const began = Date.now()
        const { receiver, deployment, front, program } = await underTest(t, sender)
        await deployment.forwarder()
        const { status, output } = await endOf(sender, program, front, { answers: 1 })
        assert.equal(status, 0, output)
        const sent = sentBy(sender, front)
        const requests = await receiver.waitFor(sent.length, 30_000)
        for (const { signature } of requests) assert.equal(signature, 'valid')
        const bodies = requests.map((request) => request.json() as Record<string, unknown> & { type: string })
        for (const { timestamp } of bodies) {
          const at = Date.parse(timestamp as string)
          assert.ok(at > began - 5_000 && at < Date.now() + 5_000, timestamp as string)
        }
        const found = bodies.map(ownFields)
        assert.deepEqual(
          byType(found),
          byType(sent.map((type) => ({ type, ...arrived[type], ...sender.adds?.[type] }))),
        )
        await deployment.drained()
        assert.equal(receiver.requests.length, sent.length)
        await assertAskedOnly(program, front)
      },
    )

    const refusals = [
      { status: 503, isTaken: true },
      { status: 429, headers: { 'retry-after': '1' } },
    ]
    if (sender.refused === 'sends again')
      test(
        `${sdk}: after an answer that was lost and one that says to wait, each call is there, once`,
        {
          skip,
        },
        async (t) => {
          const { deployment, front, program } = await underTest(t, sender, { refusals })
          const { status, output } = await endOf(sender, program, front, { answers: 3 })
          assert.equal(status, 0, output)
          assert.deepEqual(front.answers, [503, 429, 200])
          await assertCollected(deployment, sentBy(sender, front))
          await assertAskedOnly(program, front)
        },
      )
    else
      test(`${sdk}: calls that are refused are given up, and the program learns it`, { skip }, async (t) => {
        const { deployment, front, program } = await underTest(t, sender, { refusals: refusals.slice(1) })
        const { status, output } = await program.end(longMs)
        assert.deepEqual([status, front.answers], [1, [429]], output)
        assert.deepEqual(await collected(deployment), [])
        await assertAskedOnly(program, front)
      })

    const wrong: [string, Given, number][] = [
      ['a key that no source has', { writeKey: `no-such-key-${randomUUID()}` }, 401],
      ['a source that is disabled', { isEnabled: false }, 400],
    ]
    for (const [what, given, expected] of wrong)
      test(`${sdk}: with ${what} nothing is written, and the program ends`, { skip }, async (t) => {
        const { deployment, front, program } = await underTest(t, sender, given)
        // analytics-kotlin now and then keeps its calls once its settings are refused: docs/senders.md says so.
        const { status, output } = await endOf(sender, program, front, { answers: 1, mayKeep: true })
        assert.equal(status, isForApps ? 0 : 1, output)
        if (!isForApps) assert.ok(front.answers.length > 0)
        assert.ok(front.answers.every((answer) => answer === expected))
        assert.deepEqual(await collected(deployment), [])
        await assertAskedOnly(program, front)
      })

    if (sender.refused === 'sends again')
      test(
        `${sdk}: calls that are made while the collector is away arrive once it is back`,
        { skip },
        async (t) => {
          const { deployment, front, program } = await underTest(t, sender, { isAway: true })
          // The second shows that the first was refused.
          await until(async () => (await program.asked()).length >= 2, longMs, 'a second connection')
          await front.open()
          const { status, output } = await endOf(sender, program, front, { answers: 1 })
          assert.equal(status, 0, output)
          await assertCollected(deployment, sentBy(sender, front))
          await assertAskedOnly(program, front)
        },
      )
    else
      test(
        `${sdk}: calls that are made while the collector is away are given up, and the program learns it`,
        { skip },
        async (t) => {
          const { deployment, front, program } = await underTest(t, sender, { isAway: true })
          const { status, output } = await program.end(longMs)
          assert.equal(status, 1, output)
          assert.deepEqual(await collected(deployment), [])
          await assertAskedOnly(program, front)
        },
      )

    test(`${sdk}: it is noticed who else is asked: with the address of its vendor`, { skip }, async (t) => {
      const env = { COLLECTOR: sender.vendor, WRITE_KEY: `nobodys-${randomUUID()}` }
      const program = await started(t, sender, env, true)
      await until(async () => (await program.asked()).length > 0, longMs, 'a connection')
    })
  }
})
