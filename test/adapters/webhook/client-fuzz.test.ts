// Servers that behave at random, on real sockets, and both clients against each. More of it, or other servers:
//   FUZZ_CASES=1000000 FUZZ_SEED=200000 node test/adapters/webhook/client-fuzz.test.ts
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createAuthority } from '../../support/secured/certificates.ts'
import { differenceOf, explanationOf } from './client-differences.ts'
import { scriptOf } from './script-generator.ts'
import { openClient, ScriptedServer, type Result, type Script } from './scripted-server.ts'

/** How many requests are sent to a server that behaves at random, and the seed of the first script; others follow it. */
const cases = Number(process.env.FUZZ_CASES ?? 20_000)
const firstSeed = Number(process.env.FUZZ_SEED ?? 1)
/** Scripts that are played at once. */
const lanes = 6

/** Seeds of scripts that showed something once. */
const keptSeeds: readonly number[] = [
  // An interim 100, then a Retry-After: both refuse it, one of them earlier.
  751, 102_459,
  // What is no HTTP, and long: undici's refusal is the one that counts, and not our bound on a header.
  101_704, 103_552, 104_851, 105_153, 107_288, 108_110, 108_215, 108_654, 110_081,
  // A close in trailers, which llhttp heeds; and HTTP/9.1 or 0.1, which is no HTTP for one of them.
  208_473, 211_981, 215_486, 221_513, 20_018_652, 20_021_465,
  // A Connection that says close and more behind a tab; and empty lines with half a word behind them.
  256_444, 20_047_921,
]

/** Then it is enough. */
const maxWrong = 10

interface Totals {
  cases: number
  compared: number
  explained: Map<string, number>
  playedAgain: number
  wrong: string[]
}

type Clients = Record<'direct' | 'undici', ScriptedServer>

/** What an answer is taken for was written as the answer to that very request, after it was read. */
function faultOf(client: string, results: readonly Result[]): string | null {
  for (const [number, { kind, status, answered }] of results.entries()) {
    if (kind === 'timeout') return `${client}, request ${number}: no outcome`
    if (status === null) continue
    const written = [...answered.matchAll(/HTTP\/\d\.\d ([1-9]\d\d)/g)].map((line) => Number(line[1]))
    if (!written.includes(status)) return `${client}, request ${number}: nobody answered it with ${status}`
  }
  return null
}

interface Played {
  /** Wrong whatever the other client does. */
  fault: string | null
  /** A difference that the table does not explain. */
  difference: string | null
  compared: number
  explained: string[]
}

async function play({ direct, undici }: Clients, script: Script, patient: boolean): Promise<Played> {
  const [ours, theirs] = await Promise.all([direct.play(script, patient), undici.play(script, patient)])
  const played: Played = {
    fault: faultOf('direct', ours) ?? faultOf('undici', theirs),
    ...{ difference: null, compared: 0, explained: [] },
  }
  let before = ''
  let isApart = false
  for (const [number, one] of ours.entries()) {
    const other = theirs[number]!
    // Behind a difference their connections are different ones, until both have a new one.
    if (isApart && (one.isReused || other.isReused)) continue
    isApart = false
    played.compared++
    const difference = differenceOf(one, other)
    const answer = one.answered.length > other.answered.length ? one.answered : other.answered
    if (difference !== null) {
      const unasked = script.steps[number]!.unasked?.text ?? ''
      const explanation = explanationOf(difference, { before, unasked, answer })
      if (explanation === undefined) {
        const seen = { before, unasked, one, other }
        return { ...played, difference: `request ${number}: ${difference}: ${JSON.stringify(seen)}` }
      }
      played.explained.push(explanation.what)
      isApart = true
    }
    before = answer
  }
  return played
}

/** A script that shows something is played again, with all that is unasked there in time. */
const repetitions = 5

async function check(clients: Clients, seed: number, totals: Totals): Promise<void> {
  const script = scriptOf(seed)
  totals.cases += script.steps.length
  const { fault, difference, compared, explained } = await play(clients, script, false)
  totals.compared += compared
  for (const what of explained) totals.explained.set(what, (totals.explained.get(what) ?? 0) + 1)
  if (fault === null && difference === null) return
  totals.playedAgain++
  const again: Played[] = []
  for (let left = repetitions; left > 0 && (again.at(-1)?.fault ?? null) === null; left--)
    again.push(await play(clients, script, true))
  const found =
    again.at(-1)!.fault ?? (again.every((each) => each.difference !== null) ? again[0]!.difference : null)
  if (found !== null) totals.wrong.push(`seed ${seed}: ${found}`)
}

async function checkAll(t: TestContext, seeds: Iterator<number>, limit: number): Promise<Totals> {
  const authority = await createAuthority(t)
  const [direct, undici] = [
    await openClient(t, 'direct', authority),
    await openClient(t, 'undici', authority),
  ]
  const totals: Totals = { cases: 0, compared: 0, explained: new Map(), playedAgain: 0, wrong: [] }
  let told = 0
  const lane = async (): Promise<void> => {
    const clients = {
      direct: await ScriptedServer.start(t, direct),
      undici: await ScriptedServer.start(t, undici),
    }
    while (totals.cases < limit && totals.wrong.length < maxWrong) {
      const seed = seeds.next()
      if (seed.done) return
      await check(clients, seed.value, totals)
      if (totals.cases - told < 50_000) continue
      told = totals.cases
      console.error(`${told} cases, up to seed ${seed.value}: ${totals.wrong.length} wrong`)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return totals
}

function* upFrom(seed: number): Generator<number, void> {
  for (;;) yield seed++
}

test('whatever a server does, a client takes nothing but the answer to its request, and both make the same of it', async (t) => {
  const { wrong, ...totals } = await checkAll(t, upFrom(firstSeed), cases)
  t.diagnostic(JSON.stringify({ ...totals, explained: [...totals.explained].sort(([, a], [, b]) => b - a) }))
  assert.deepEqual(wrong, [])
  assert.ok(totals.compared > totals.cases * 0.8, `${totals.compared} of ${totals.cases} could be compared`)
})

test('what showed something once does not any more', async (t) => {
  const { wrong } = await checkAll(t, keptSeeds.values(), Infinity)
  assert.deepEqual(wrong, [])
})
