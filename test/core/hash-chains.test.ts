import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { HashChains, type Chained } from '../../src/core/hash-chains.ts'
import { maxPromoted } from '../support/promotion.ts'

interface Entry extends Chained<Entry> {
  name: number
}

interface Heavy extends Chained<Heavy> {
  numbers: number[]
}

const entryOf = (name: number, hash: number): Entry => ({ name, hash, chained: null })

function find(chains: HashChains<Entry>, name: number, hash: number): Entry | null {
  let entry = chains.first(hash)
  while (entry !== null && (entry.hash !== hash || entry.name !== name)) entry = entry.chained
  return entry
}

test('property: exactly the entries that were added and not removed are found, even if they share a hash', () => {
  const steps = fc.array(fc.tuple(fc.nat(60), fc.constantFrom(1, 7, 1_000), fc.boolean()), {
    maxLength: 400,
  })
  fc.assert(
    fc.property(steps, (steps) => {
      const chains = new HashChains<Entry>()
      const model = new Map<number, Entry>()
      for (const [name, hashes, isOut] of steps) {
        const hash = ((name % hashes) * 0x9e3779b1) | 0
        const known = [...model.values()].find((entry) => entry.name === name)
        if (isOut && known) {
          chains.remove(known)
          assert.equal(known.chained, null)
          model.delete(name)
        } else if (!known) {
          const entry = entryOf(name, hash)
          chains.add(entry)
          model.set(name, entry)
        }
        assert.equal(chains.size, model.size)
        for (const entry of model.values()) assert.equal(find(chains, entry.name, entry.hash), entry)
        assert.deepEqual(new Set(chains), new Set(model.values()))
      }
    }),
  )
})

test('of entries with the same hash the newest comes first, also after the table has grown', () => {
  const chains = new HashChains<Entry>()
  for (let name = 0; name < 100; name++) chains.add(entryOf(name, name % 2))
  const names: number[] = []
  for (let entry = chains.first(1); entry !== null; entry = entry.chained)
    if (entry.hash === 1) names.push(entry.name)
  assert.deepEqual(
    names,
    Array.from({ length: 50 }, (_, index) => 99 - 2 * index),
  )
})

test('removed entries are freed with the young generation, however many pass through', () => {
  const chains = new HashChains<Heavy>()
  const inFlight: Heavy[] = []
  const promoted = maxPromoted((index) => {
    const entry = { hash: index * 31, chained: null, numbers: new Array<number>(100).fill(index) }
    chains.add(entry)
    inFlight.push(entry)
    if (inFlight.length > 40) chains.remove(inFlight.shift()!)
  })
  assert.ok(promoted < 2_000_000, `${promoted} bytes`)
})
