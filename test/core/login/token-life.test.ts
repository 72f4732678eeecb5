import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  noToken,
  retryMs,
  tokenAfter,
  tokenDoubted,
  tokenFailed,
  tokenGot,
  tokenPhases,
  tokenProven,
  tokenTransitions,
  unknownLifetimeMs,
  type TokenLifeEvent,
  type TokenLife,
  type TokenPhase,
} from '../../../src/core/login/token-life.ts'

const phases = Object.keys(tokenTransitions) as TokenPhase[]
const events: TokenLifeEvent[] = ['wanted', 'due', 'got', 'failed', 'lapsed', 'refused']
const minute = 60_000

const step = (life: TokenLife, event: TokenLifeEvent): TokenLife => {
  if (event === 'got') return tokenGot(life, 'next', 1_000, minute)
  if (event === 'failed') return tokenFailed(life, 'away', 1_000, 0, 1)
  return tokenAfter(life, event)
}
const led = (...steps: TokenLifeEvent[]): TokenLife => steps.reduce(step, noToken)

/** How a token gets into each phase. */
const lives: Record<TokenPhase, TokenLife> = {
  none: noToken,
  fetching: led('wanted'),
  valid: led('wanted', 'got'),
  renewing: led('wanted', 'got', 'due'),
  waning: led('wanted', 'got', 'due', 'failed'),
  failing: led('wanted', 'failed'),
  retrying: led('wanted', 'failed', 'due'),
}

test('there is a token exactly in the phases in which requests go, and a transition outside of the table is a bug', () => {
  for (const phase of phases) {
    assert.equal(lives[phase].phase, phase)
    for (const event of events) {
      const to = tokenTransitions[phase][event]
      if (to === undefined) {
        assert.throws(() => step(lives[phase], event), /^Error: a bug: /)
        continue
      }
      const life = step(lives[phase], event)
      assert.equal(life.phase, to)
      assert.equal(life.token !== null, tokenPhases[to].requests === 'go', `${phase}, ${event}`)
      // While it is asked for, nothing is due; else something is, unless nobody wants a token.
      assert.equal(life.dueAt === Infinity, tokenPhases[to].isAsked || to === 'none', `${phase}, ${event}`)
      if (tokenPhases[to].requests === 'deferred') assert.equal(life.problem, 'away')
    }
  }
})

test('a token is renewed after three quarters of its life, which begins when it is asked for', () => {
  const life = tokenGot(led('wanted'), 'a', 5_000, 8 * minute)
  assert.deepEqual([life.expiresAt, life.dueAt], [5_000 + 8 * minute, 5_000 + 6 * minute])
  const unknown = tokenGot(led('wanted'), 'a', 0, null)
  assert.equal(unknown.expiresAt, unknownLifetimeMs)
  const endless = tokenGot(led('wanted'), 'a', 0, Number.MAX_SAFE_INTEGER)
  assert.equal(endless.dueAt, 18 * 60 * minute)
})

test('what cannot be had is asked for again after one second, then two, and so on to a minute, by chance half of it', () => {
  const waits = [1, 2, 3, 4, 5, 6, 7, 8, 1_000].map((failures) => retryMs(failures, 1) / 1_000)
  assert.deepEqual(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60])
  assert.equal(retryMs(3, 0), 2_000)
  const failed = tokenFailed(led('wanted'), 'away', 10_000, 0, 1)
  assert.equal(failed.dueAt, 11_000)
  assert.equal(tokenFailed(tokenAfter(failed, 'due'), 'away', 20_000, 0, 1).dueAt, 22_000)
  // A wait that the endpoint asks for is honoured, up to five minutes.
  assert.equal(tokenFailed(led('wanted'), 'away', 0, 90_000, 1).dueAt, 90_000)
  assert.equal(tokenFailed(led('wanted'), 'away', 0, Number.MAX_SAFE_INTEGER, 1).dueAt, 5 * minute)
  assert.equal(led('wanted', 'failed', 'due', 'got').failures, 0)
})

test('a token in doubt is so until it was taken, or until the next one is due', () => {
  const replaced = led('wanted', 'got', 'refused', 'got')
  assert.equal(replaced.isDoubted, false)
  const doubted = tokenDoubted(replaced)
  assert.equal(doubted.isDoubted, true)
  assert.equal(tokenProven(doubted).isDoubted, false)
  assert.equal(step(step(doubted, 'due'), 'got').isDoubted, false)
  assert.equal(step(step(step(doubted, 'lapsed'), 'wanted'), 'got').isDoubted, false)
})

test('a token that ends while the next one cannot be had leaves the time at which that is asked for again', () => {
  const { dueAt, problem, phase } = step(lives.waning, 'lapsed')
  assert.deepEqual([phase, problem, dueAt], ['failing', 'away', lives.waning.dueAt])
})
