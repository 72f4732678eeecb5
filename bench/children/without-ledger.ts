// Loaded before a forwarder (`node --import`): it then commits as it did before there was a ledger, keeping no results
// and writing no tallies. Only a benchmark has use for that, so the product has no switch for it.
import { fitFinished } from '../../src/core/offsets/offset-runs.ts'
import { ResultLog } from '../../src/core/ledger/result-log.ts'
import { Ledger } from '../../src/forwarder/commit/ledger.ts'
import { PartitionLedger, type PendingCommit } from '../../src/forwarder/commit/partition-ledger.ts'

ResultLog.prototype.add = () => {}
Ledger.prototype.tally = () => Promise.resolve()
const noTally: PendingCommit['tally'] = {
  id: '',
  predecessor: null,
  group: '',
  start: 0,
  position: 0,
  before: [],
  finished: [],
  lost: [],
  records: 0,
  owner: '',
  earlier: [],
  counts: [],
  held: [],
}
PartitionLedger.prototype.prepareCommit = function (tracker, position) {
  const { runs, metadata } = fitFinished(position, tracker.finishedRuns(), [])
  const finished = { position, runs }
  return { position, metadata, tally: noTally, finished, base: this.base, tallied: [], hasMore: false }
}
