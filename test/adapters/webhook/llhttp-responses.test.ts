import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createAuthority } from '../../support/secured/certificates.ts'
import { clientDifferences, differenceOf, explanationOf, type Difference } from './client-differences.ts'
import { llhttpResponses } from './llhttp-responses.ts'
import { openClient, ScriptedServer, simple, type Result, type Script } from './scripted-server.ts'

/** A server that answers the first request with this text, and the second one well. */
const scriptOf = (text: string): Script => ({
  ...{ secure: null, early: '' },
  steps: [[[text]], [[simple(299)]]].map((answer) => ({
    ...{ path: 0, gap: 0, size: 0, unasked: null, answer },
    ...{ end: 'keep', endsAtOnce: false },
  })),
})

/** What both make of both requests. */
async function playsOf(t: TestContext): Promise<(text: string) => Promise<[Result, Result][]>> {
  const authority = await createAuthority(t)
  const [direct, undici] = [
    await ScriptedServer.start(t, await openClient(t, 'direct', authority)),
    await ScriptedServer.start(t, await openClient(t, 'undici', authority)),
  ]
  return async (text) => {
    const [ours, theirs] = [await direct.play(scriptOf(text)), await undici.play(scriptOf(text))]
    return ours.map((one, number) => [one, theirs[number]!])
  }
}

/** The first in which two clients differ, and its explanation. */
function differenceIn(text: string, results: [Result, Result][]): { how: Difference; why?: string } | null {
  for (const [number, [one, other]] of results.entries()) {
    const how = differenceOf(one, other)
    if (how === null) continue
    const written =
      number === 0
        ? { before: '', unasked: '', answer: text }
        : { before: text, unasked: '', answer: one.answered }
    const why = explanationOf(how, written)?.what
    return { how, ...(why !== undefined && { why }) }
  }
  return null
}

test('both clients make the same of llhttp’s own responses, but for what is in the table', async (t) => {
  const play = await playsOf(t)
  const unexplained: unknown[] = []
  const explained = new Set<string>()
  let taken = 0
  for (const [name, text] of llhttpResponses) {
    const results = await play(text)
    const difference = differenceIn(text, results)
    if (results[0]![0].status !== null && difference === null) taken++
    if (difference?.why !== undefined) explained.add(name)
    else if (difference !== null) unexplained.push([name, difference.how, results[0]])
    // Whatever the first response is, the second request gets its own.
    assert.deepEqual(
      results[1]!.map(({ status }) => status),
      [299, 299],
      name,
    )
  }
  t.diagnostic(
    `${llhttpResponses.length} responses, ${taken} taken by both, differing: ${[...explained].join(', ')}`,
  )
  assert.deepEqual(unexplained, [])
  assert.ok(taken > 25, `both take ${taken}`)
})

test('each difference in the table is one', async (t) => {
  const play = await playsOf(t)
  for (const { what, example, applies, how } of clientDifferences) {
    const results = await play(example)
    const difference = differenceIn(example, results)
    assert.ok(difference !== null, `${what}: both do the same`)
    assert.ok(how.includes(difference.how), `${what}: ${difference.how}`)
    const isBefore = differenceOf(...results[0]!) === null
    const written = isBefore
      ? { before: example, unasked: '', answer: results[1]![0].answered }
      : { before: '', unasked: '', answer: example }
    assert.ok(applies(written), what)
  }
})
