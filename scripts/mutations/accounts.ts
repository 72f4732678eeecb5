import type { Mutation } from './mutation.ts'

const toldOf =
  'Each commit is told of before it is made, once, whatever becomes of commits, members and processes'
const proved =
  "`audit` proves that every call is accounted for, also after crashes and moves, and knows a crash's copies as copies"
const named =
  'What is missing, told twice or forged is named by topic, partition and offsets; holes are no gap'

const told = { file: 'forwarder/tallies.test.ts', name: 'the chain tells of what is committed once' }
const everyMoment = { file: 'core/audit.test.ts', name: 'everything is accounted for, at every moment' }
const taken = { file: 'core/audit.test.ts', name: 'whatever is taken away afterwards is missed' }

/** The ledger, and the audit of it. */
export const accounts: readonly Mutation[] = [
  {
    name: 'a tally that counts repeats',
    promise: toldOf,
    file: 'src/forwarder/partition-ledger.ts',
    find: 'const told = lessCover(cover, base)',
    replace: 'const told = lessCover(cover, none)',
    test: told,
  },
  {
    name: 'a commit that does not name its tally',
    promise: toldOf,
    file: 'src/forwarder/partition-ledger.ts',
    find: 'metadata: withTally(metadata, tally.id)',
    replace: 'metadata',
    test: told,
  },
  {
    name: 'the chain forgotten when a partition is taken over',
    promise: toldOf,
    file: 'src/forwarder/partition-ledger.ts',
    find: 'this.#base = base\n    this.#predecessor = tallyId\n  }',
    replace: 'this.#base = base\n    this.#predecessor = null\n  }',
    test: told,
  },
  {
    name: 'results of a broken membership forgotten',
    promise: toldOf,
    file: 'src/forwarder/partition-ledger.ts',
    find: 'if (both.length > 0) this.#earlier.push',
    replace: 'if (both.length < 0) this.#earlier.push',
    test: told,
  },
  {
    name: 'copies that a crash made taken for what was told of',
    promise: proved,
    file: 'src/core/audit.ts',
    find: 'return result.sink.isBy(record.owner, from.offset) && !record.repeated',
    replace: 'return result.sink.isTold(from.offset)',
    test: everyMoment,
  },
  {
    name: 'tallies off the chain taken for facts',
    promise: proved,
    file: 'src/core/ledger-chain.ts',
    find: 'if (lineage.tip === predecessor && begins) return lineage',
    replace:
      'if (lineage.tip === predecessor && begins) {\n        for (const other of [...lineage.candidates.values()]) lineage.advance(other)\n        return lineage\n      }',
    test: everyMoment,
  },
  {
    name: 'a tally without its commit taken for a fact',
    promise: proved,
    file: 'src/core/ledger-chain.ts',
    find: 'if (!last || this.#isAtStartOf(last)) {',
    replace: 'if (!last) {',
    test: everyMoment,
  },
  {
    name: 'a call that is gone overlooked',
    promise: named,
    file: 'src/core/audit.ts',
    find: 'if (first >= low && told !== found)',
    replace: 'if (first >= low && told < found)',
    test: taken,
  },
  {
    name: 'a retry that is gone overlooked',
    promise: named,
    file: 'src/core/audit.ts',
    find: 'toldRetries !== foundRetries',
    replace: 'toldRetries < foundRetries',
    test: taken,
  },
  {
    name: 'an offset that a tally passes over overlooked',
    promise: named,
    file: 'src/core/ledger-chain.ts',
    find: 'if (passed.length > 0)',
    replace: 'if (passed.length < 0)',
    test: { file: 'core/ledger-chain.test.ts', name: 'an offset that a tally passes over is a gap' },
  },
  {
    name: 'what is committed and told of by nobody overlooked',
    promise: named,
    file: 'src/core/ledger-chain.ts',
    find: 'const untold = lessRuns(committed, held)',
    replace: 'const untold = lessRuns(held, held)',
    test: { file: 'core/ledger-chain.test.ts', name: 'a commit that holds more than its tally is a gap' },
  },
]
