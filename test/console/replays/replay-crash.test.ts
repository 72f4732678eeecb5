// A replay whose process ends before any of its effects, and the next one before any of its own.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ReplayKind } from '../../../src/core/replay/replay-job.ts'
import { heldReplayId } from '../../../src/core/replay/replay-rules.ts'
import {
  askFor,
  askForDeadLetters,
  checkSent,
  dryRunOf,
  runProcess,
  unnotedOf,
  type ReplayWork,
} from '../../support/replay/killed-replays.ts'
import { pauseId, ReplayWorld, type WorldOptions } from '../../support/replay/replay-world.ts'
import { quickTime, timeNow } from '../../support/quick-time.ts'

interface Scenario extends WorldOptions {
  /** Null: what the pause held, once it has ended. */
  only: ReplayKind[] | null
}

const scenarios: Record<string, Scenario> = {
  'the end of a pause': { only: null },
  'the end of a pause with a delivery for each URL': { only: null, deliverTo: 'every' },
  'what was skipped': { only: ['skipped'], deliverTo: 'every' },
  'what failed': { only: ['failed'] },
  'what was delivered': { only: ['delivered'], deliverTo: 'every' },
  'what a cancelled replay of a pause left': { only: ['held'] },
  'dead letters': { only: ['failed'], hasDeadLetters: true },
  everything: { only: ['held', 'skipped', 'failed', 'delivered'] },
  'all calls to a new destination': { only: ['skipped'], isNew: true },
}

function begun({ only, ...options }: Scenario): ReplayWorld {
  const world = new ReplayWorld({ ...options, isLarge: only === null })
  if (only === null) return world
  if (options.hasDeadLetters) {
    askForDeadLetters(world)
    return world
  }
  if (!options.isNew) cancelHeld(world)
  askFor(world, only)
  return world
}

/** So that another replay may take what was held. */
function cancelHeld(world: ReplayWorld): void {
  const id = heldReplayId(pauseId)
  world.execute({ type: 'resume_destination', id: 'crm', pauseId: null, at: timeNow() })
  const terms = {
    deadLetters: null,
    destinationId: 'crm',
    only: ['held' as const],
    since: 0,
    until: timeNow(),
    rate: null,
  }
  const all = { types: null, events: null, user: null, messageId: null }
  world.execute({
    type: 'start_replay',
    id,
    terms: { ...terms, ...all },
    pauseId,
    keptSince: null,
    at: timeNow(),
  })
  world.execute({ type: 'cancel_replay', id, at: timeNow(), totals: null })
}

const isFinished = ({ settings }: ReplayWorld): boolean =>
  [...settings.replays.values()].some(({ state }) => state === 'finished')

/** For each place of an end: the process, and one that finishes. Returns how many places there are. */
async function everyEnd(scenario: Scenario, given: Pick<ReplayWork, 'last' | 'end'>): Promise<number> {
  const resumes = scenario.only === null
  for (let effects = 0; ; effects++) {
    const world = begun(scenario)
    const isThrough = await runProcess(world, { ...given, resumes, effects })
    const mayRepeat = given.end === 'told to stop' ? new Set<string>() : unnotedOf(world)
    if (!isFinished(world)) await runProcess(world, { resumes })
    checkSent(world, mayRepeat)
    if (isThrough) return effects
  }
}

for (const [what, scenario] of Object.entries(scenarios)) {
  for (const last of ['arrived', 'lost'] as const)
    test(`${what}: sent in full, in order and once, but for what a kill anywhere left unnoted, its last write ${last}`, async (t) => {
      quickTime(t)
      const ends = await everyEnd(scenario, { last })
      assert(ends >= 8, `${ends} places`)
    })

  test(`${what}: sent in full, in order and once, wherever its process is told to stop`, async (t) => {
    quickTime(t)
    assert((await everyEnd(scenario, { end: 'told to stop' })) >= 8)
  })
}

test('a replay whose next process is killed as well: sent in full, wherever both ends were', async (t) => {
  quickTime(t)
  const scenario = scenarios['what failed']!
  for (let first = 0, isLast = false; !isLast; first++)
    for (let then = 0, isThrough = false; !isThrough; then++) {
      const world = begun(scenario)
      isLast = await runProcess(world, { effects: first })
      const mayRepeat = unnotedOf(world)
      isThrough = isFinished(world) || (await runProcess(world, { effects: then, last: 'arrived' }))
      for (const id of unnotedOf(world)) mayRepeat.add(id)
      if (!isFinished(world)) await runProcess(world, {})
      checkSent(world, mayRepeat)
    }
})

for (const deliverTo of ['any', 'every'] as const)
  test(`a dry run counts what was held of erased users as erased, calls and retries alike, delivered to ${deliverTo}`, async (t) => {
    quickTime(t)
    const world = new ReplayWorld({ deliverTo })
    cancelHeld(world)
    // The forwarders finish all that there is.
    for (let look = 0; look < 3; look++) world.look()
    const held = world.replayable.filter(({ kind }) => kind === 'held')
    const ofUser = held.filter(({ user }) => user === 'u00')
    const { counts, erased } = await dryRunOf(world, ['held'], 'u00')
    // One call in each partition is of the user who was erased before.
    const before = deliverTo === 'any' ? 2 : 4
    assert.deepEqual([counts.held, erased], [held.length - ofUser.length, ofUser.length + before])
    assert(ofUser.some(({ place }) => place.topic === world.retryTopic))
  })
