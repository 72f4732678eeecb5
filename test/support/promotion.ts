import v8 from 'node:v8'
import vm from 'node:vm'

v8.setFlagsFromString('--expose-gc')
const collect = vm.runInNewContext('gc') as (options: { type: 'minor' | 'major' }) => void

const oldBytes = (): number =>
  v8
    .getHeapSpaceStatistics()
    .filter(({ space_name }) => /^(old|large_object)_space$/.test(space_name))
    .reduce((sum, { space_used_size }) => sum + space_used_size, 0)

/**
 * How much at most lay among V8's old objects more than before, in bytes, while `turn` was called so often, with young
 * objects collected every N turns. What is in use at the beginning counts among the old ones.
 */
export function maxPromoted(turn: (index: number) => void, turns = 100_000, every = 5_000): number {
  // Compiled, and grown to the size that it needs; what it holds becomes old.
  for (let index = 0; index < turns / 10; index++) turn(index)
  for (let times = 0; times < 4; times++) collect({ type: 'minor' })
  collect({ type: 'major' })
  const before = oldBytes()
  let max = 0
  for (let index = 0; index < turns; index++) {
    turn(index)
    if (index % every !== every - 1) continue
    collect({ type: 'minor' })
    max = Math.max(max, oldBytes() - before)
  }
  return max
}
