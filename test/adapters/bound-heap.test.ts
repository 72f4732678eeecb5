import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
const source = join(import.meta.dirname, '../../src/adapters/bound-heap.ts')

/** MB that V8 gives to young objects in a process of its own that makes and forgets many times as much. */
async function youngMb(bound: string): Promise<number> {
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8'
    import { boundHeap } from ${JSON.stringify(source)}
    ${bound}
    let kept = []
    for (let made = 0; made < 8_000_000; made += 20_000) {
      for (let index = 0; index < 20_000; index++) kept.push({ index })
      if (kept.length > 300_000) kept = kept.slice(200_000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    console.log(getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size / 2 ** 20)`
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program])
  return Number(stdout)
}

test('a forwarder’s young generation grows to 32 MB and no further, and that of a sync to at most 8 MB', async () => {
  const [unbound, forwarder, sync] = await Promise.all([
    youngMb(''),
    youngMb('boundHeap(32)'),
    youngMb('boundHeap()'),
  ])
  assert.ok(unbound > 32, `${unbound} MB where nothing is bound`)
  assert.equal(forwarder, 32)
  assert.ok(sync <= 8, `${sync} MB`)
})
