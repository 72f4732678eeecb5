// What the console answers where there is very much of everything. The operations are the real ones.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Overview } from '../../src/operators/statistics/overview.ts'
import { adminToken } from '../support/consoles.ts'
import { openConsoleOf, servicesOfMany } from '../support/services-of-many.ts'

const bounded = 50_000

async function underTest(t: TestContext, given: Parameters<typeof servicesOfMany>[0]) {
  const server = await openConsoleOf(servicesOfMany(given))
  t.after(() => server.close(0))
  return async <T>(path: string): Promise<{ bytes: number; body: T }> => {
    const response = await fetch(`http://127.0.0.1:${server.port}/api/v1${path}`, {
      headers: { authorization: `Bearer ${adminToken}` },
    })
    const text = await response.text()
    assert.equal(response.status, 200, text.slice(0, 500))
    return { bytes: Buffer.byteLength(text), body: JSON.parse(text) as T }
  }
}

interface Problems {
  headline: string
  causes: {
    title: string
    problems: number
    first: { destination: { urls: object[]; urlsOmitted: number } }
  }[]
  causesOmitted: number
  problems: { destinationId: string }[]
  omitted: number
}

test('with 100,000 destinations in trouble, overview and problems take 50 KB at most, and say how many are left out', async (t) => {
  const count = 100_000
  const ask = await underTest(t, { count, isLong: true })
  const overview = await ask<Overview>('/overview?window=1h')
  assert.ok(overview.bytes <= bounded, `${overview.bytes} bytes`)
  const { byHealth, destinations, destinationsOmitted, sources, sourcesOmitted, totals } = overview.body
  assert.equal(byHealth.failing, count)
  assert.equal(destinations.length + destinationsOmitted, count)
  assert.ok(destinations.length > 0 && sources.length > 0)
  assert.equal(sources.length + sourcesOmitted, count + 2, 'those that are set and those that were counted')
  assert.equal(totals.deadLettered, count * 20, 'the totals are of all')

  const problems = await ask<Problems>('/problems?limit=0')
  assert.ok(problems.bytes <= bounded, `${problems.bytes} bytes`)
  const { causes, causesOmitted } = problems.body
  assert.ok(causes.length > 0)
  assert.match(problems.body.headline, /^100000 destinations and /)
  const { destination } = causes[0]!.first
  assert.ok(destination.urls.length > 0 && destination.urlsOmitted > 0)
  // Each of them fails, and has dead letters of another reason.
  assert.ok(causes.length + causesOmitted >= 2 * count)
})

test('what one host answers is one cause, whose problems are listed when they are asked for', async (t) => {
  const ask = await underTest(t, { count: 700 })
  const { body } = await ask<Problems>('/problems?limit=0&kind=destination&kind=dead_letters')
  assert.deepEqual(
    body.causes.map(({ title, problems }) => [title, problems]),
    [
      ['100 destinations at shared.example are failing', 100],
      ['54 destinations are held', 54],
      ['100 destinations: 2000 dead letters, most of them rejected', 100],
    ],
  )
  assert.equal(body.problems.length, 0)
  const listed = await ask<Problems>('/problems?cause=destination:held&limit=50')
  assert.deepEqual([listed.body.causes.length, listed.body.problems.length, listed.body.omitted], [1, 50, 4])
  const ofKind = await ask<Problems>('/problems?kind=no_collector&kind=no_forwarder')
  assert.deepEqual([ofKind.body.headline, ofKind.body.problems], ['All well', []])
})

test('a source of 100,000 destinations names the first hundred, and says how many there are', async (t) => {
  const ask = await underTest(t, { count: 100_000 })
  const { bytes, body } = await ask<{ destinationIds: string[]; destinationCount: number }>('/sources/shop')
  assert.ok(bytes <= bounded, `${bytes} bytes`)
  assert.deepEqual([body.destinationIds.length, body.destinationCount], [100, 100_000])
  assert.deepEqual([body.destinationIds[0], body.destinationIds[99]], ['many-0', 'many-99'])
})

interface Page {
  data: { id: string; p95Ms: number | null; deadLettered: number; health: { word: string } }[]
  next: string | null
  total: number
}

test('destinations are filtered and sorted by the server, and pages have each of them once', async (t) => {
  const ask = await underTest(t, { count: 700 })
  const seen: Page['data'] = []
  let cursor = ''
  do {
    const { body } = await ask<Page>(`/overview/destinations?limit=200${cursor}`)
    assert.equal(body.total, 700)
    seen.push(...body.data)
    cursor = body.next === null ? '' : `&cursor=${body.next}`
  } while (cursor !== '')
  assert.deepEqual([seen.length, new Set(seen.map(({ id }) => id)).size], [700, 700])
  const words = seen.map(({ health }) => health.word)
  assert.deepEqual(
    [words.indexOf('held'), words.indexOf('delivering'), words.lastIndexOf('failing')],
    [100, 154, 99],
  )

  const first = async (query: string) => (await ask<Page>(`/overview/destinations?${query}`)).body
  const found = await first('q=MANY-69')
  assert.deepEqual([found.total, found.data.every(({ id }) => id.startsWith('many-69'))], [11, true])
  assert.equal((await first('q=name%20of%20many-699')).total, 1, 'by its name')
  assert.deepEqual((await first('health=held&limit=1')).total, 54)
  assert.deepEqual(
    (await first('id=many-5&id=many-3&id=none&sort=name')).data.map(({ id }) => id),
    ['many-3', 'many-5'],
  )
  const slowest = (await first('sort=p95')).data.map(({ p95Ms }) => p95Ms ?? 0)
  assert.deepEqual(
    slowest,
    slowest.toSorted((a, b) => b - a),
  )
  assert.equal((await first('sort=name')).data[1]!.id, 'many-1')
  assert.equal((await first('sort=dead_letters')).data[0]!.deadLettered, 20)

  const listed = (await ask<{ data: { id: string }[] }>('/destinations?q=Many-69&limit=2')).body
  assert.deepEqual(
    listed.data.map(({ id }) => id),
    ['many-69', 'many-690'],
  )
})
