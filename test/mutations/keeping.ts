import type { Mutation } from '../../scripts/mutations/mutation.ts'

/** Nothing lost, little twice. */
export const keeping: readonly Mutation[] = [
  {
    id: 'an-answer-that-leaves-a-topic-out-taken-for-nothing-committed',
    file: 'src/adapters/kafka/group/committed-offsets.ts',
    find: 'entry.topic === topic && entry.partitions.length > 0)) throw leftOut(topic)',
    replace:
      "entry.topic === topic && entry.partitions.length > 0)) found.push({ topic, partitions: [0, 1, 2, 3].map((partition) => ({ partition, offset: '-1', metadata: null })) })",
    test: {
      file: 'pipeline/failures/silent-answers.test.ts',
      name: 'a forwarder whose question about commits is not answered asks again, and sends nothing twice',
    },
  },
  {
    id: 'compressed-records-that-say-they-are-not',
    file: 'src/adapters/kafka/producer/produce-request.ts',
    find: 'packed === null ? codecs.none : codecs.gzip',
    replace: 'codecs.none',
    test: {
      file: 'adapters/kafka/producer/produce-request.test.ts',
      name: 'property: records are compressed where it is worth it, and are the same ones',
    },
  },
  {
    id: 'dead-letters-that-are-not-compressed',
    file: 'src/adapters/kafka/write/record-sink.ts',
    find: 'topic === this.#topics.deadLetters || ',
    replace: '',
    test: {
      file: 'adapters/kafka/write/record-sink.test.ts',
      name: 'what waits in a tier or is a dead letter is compressed, and read as it was; the ledger is not',
    },
  },
  {
    id: 'committed-before-delivery',
    file: 'src/forwarder/consume/assigned-partition.ts',
    find: '    return work\n',
    replace: '    this.tracker.finish(work.sequence)\n    return work\n',
    test: {
      file: 'pipeline/failures/crash.test.ts',
      name: 'with one partition',
      within: 'after kill -9 under load, the next process sends exactly what no acknowledged commit holds',
    },
  },
  {
    id: 'finished-offsets-above-the-prefix-not-in-the-commit',
    file: 'src/forwarder/commit/partition-ledger.ts',
    find: 'const { runs, metadata } = fitFinished(position, finishedRuns, base.runs)',
    replace: 'const { runs, metadata } = fitFinished(position, finishedRuns.slice(0, 0))',
    test: {
      file: 'pipeline/failures/crash.test.ts',
      name: 'with one partition',
      within: 'after kill -9 under load, the next process sends exactly what no acknowledged commit holds',
    },
  },
  {
    id: 'the-last-offset-committed-in-place-of-the-prefix',
    file: 'src/core/offsets/offset-tracker.ts',
    find: 'if (this.#head < this.#tail) return this.#offsets[this.#head & this.#mask]!\n    const position',
    replace: 'const position',
    test: {
      file: 'core/offsets/offset-tracker.test.ts',
      name: 'the tracker agrees with a naive model through fetches, refetches, rebalances and crashes',
    },
  },
  {
    id: 'no-generation-check',
    file: 'src/forwarder/commit/committer.ts',
    find: 'const ours = tallied.filter(({ partition }) => partition.alive)',
    replace: 'const ours = tallied',
    test: {
      file: 'forwarder/consume/group-consumer.test.ts',
      name: 'a commit is made once the broker has its tally, without partitions that were lost meanwhile',
    },
  },
  {
    id: 'a-late-attempt-counted-again-in-every-tally',
    file: 'src/forwarder/commit/partition-ledger.ts',
    find: 'const left = (from.get(code) ?? 0) - count',
    replace: 'const left = (from.get(code) ?? 0) - count * 0',
    test: {
      file: 'forwarder/tallies.test.ts',
      name: 'property: whatever happens to commits, members and processes, the chain covers committed offsets once, names their owner, and sums up exactly what that did',
    },
  },
  {
    id: 'late-attempts-not-tallied-where-nothing-else-is',
    file: 'src/forwarder/commit/committer.ts',
    find: ' || ledger.hasLateAttempts',
    replace: '',
    test: {
      file: 'pipeline/audit/tallies.test.ts',
      name: 'tallies count, for each URL, the attempts that its receiver saw, and skips and dead letters by reason',
    },
  },
  {
    id: 'failed-attempts-not-tallied',
    file: 'src/forwarder/commit/ledger.ts',
    find: "if ((failed || active.settled) && kind !== 'deferred')",
    replace: "if (active.settled && kind !== 'deferred')",
    test: {
      file: 'pipeline/audit/tallies.test.ts',
      name: 'tallies count, for each URL, the attempts that its receiver saw, and skips and dead letters by reason',
    },
  },
  {
    id: 'what-came-in-summed-up-again',
    file: 'src/adapters/metrics/collector-metrics.ts',
    find: 'source.summed = [...counts]',
    replace: 'void summed',
    test: {
      file: 'cli/reports/process-reports.test.ts',
      name: 'every ten seconds there is a heartbeat, and a summary of each source of which something came in',
    },
  },
  {
    id: 'reports-that-pile-up-while-kafka-is-away',
    file: 'src/cli/process-reports.ts',
    find: 'this.#writing ??= this.#write(false)',
    replace: 'this.#writing = this.#write(false)',
    test: {
      file: 'cli/reports/process-reports.test.ts',
      name: 'while Kafka is away what comes in is kept for one summary of all that time, and no heartbeat piles up',
    },
  },
  {
    id: 'no-last-heartbeat',
    file: 'src/cli/process-reports.ts',
    find: 'if (isReady) await this.#writeLast()',
    replace: 'void isReady',
    test: {
      file: 'pipeline/audit/reports.test.ts',
      name: 'each process writes heartbeats from its start to its end, and a collector says what it answered',
    },
  },
  {
    id: 'a-map-of-an-earlier-assignment-used',
    file: 'src/forwarder/consume/group-consumer.ts',
    find: 'if (committed === null || signal.aborted) return',
    replace: 'if (committed === null) return',
    test: {
      file: 'forwarder/consume/group-consumer.test.ts',
      name: 'a committed map that was requested under an earlier assignment is not used',
    },
  },
  {
    id: 'partitions-taken-before-their-committed-map-is-read',
    file: 'src/core/offsets/offset-tracker.ts',
    find: "if (this.#state !== 'seeking' && this.#state !== 'reading') return 'drop'",
    replace: "if (this.#state === 'gap') return 'drop'",
    test: {
      file: 'forwarder/consume/group-consumer.test.ts',
      name: 'no record is accepted before the committed map has been read, and then reading starts from there',
    },
  },
  {
    id: 'a-partition-not-read-from-where-its-map-says',
    file: 'src/forwarder/consume/group-consumer.ts',
    find: `logStart))
    this.#source.seek(partition, partition.reading.next!)`,
    replace: 'logStart))',
    test: {
      file: 'forwarder/consume/group-consumer.test.ts',
      name: 'no record is accepted before the committed map has been read, and then reading starts from there',
    },
  },
  {
    id: 'a-commit-taken-for-acknowledged-without-the-event',
    file: 'src/forwarder/commit/committer.ts',
    find: 'if (await this.#source.commit(commits)) this.#acknowledged(ours)\n    else this.#failed()',
    replace: 'await this.#source.commit(commits)\n    this.#acknowledged(ours)',
    test: {
      file: 'forwarder/consume/group-consumer.test.ts',
      name: 'a commit that was not acknowledged is repeated',
    },
  },
  {
    id: 'work-of-lost-partitions-sent',
    file: 'src/forwarder/send/dispatcher.ts',
    find: "if (!partition.alive) return 'drop'",
    replace: '',
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'a request whose connection opened slowly is sent only if it still may be',
    },
  },
  {
    id: 'a-retry-on-the-wire-skipped',
    file: 'src/forwarder/send/dispatcher.ts',
    find: 'if (active.sent > 0 && active.pending > 1) {',
    replace: 'if (active.sent < 0) {',
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'of a retry that is on the wire to one URL when',
    },
  },
  {
    id: 'partitions-assigned-afresh-in-each-rebalance',
    file: 'src/core/offsets/sticky-assignment.ts',
    find: 'if (owner === undefined) free.push(partition)\n    else owned.get(owner)!.push(partition)',
    replace: 'free.push(partition)\n    void owner',
    test: {
      file: 'core/offsets/sticky-assignment.test.ts',
      name: 'a member that joins gets its share, and no partition moves between the others',
    },
  },
  {
    id: 'session-freshness-off',
    file: 'src/forwarder/send/dispatcher.ts',
    find: "return this.#stopping || !partition.owner.mayStart() ? 'wait' : 'send'",
    replace: "return this.#stopping ? 'wait' : 'send'",
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'without fresh heartbeats nothing starts, and everything starts once they are back',
    },
  },
  {
    id: 'heartbeats-counted-from-their-answers',
    file: 'src/adapters/kafka/group/group-membership.ts',
    find: 'this.#lastHeartbeat = this.#askedAt',
    replace: 'this.#lastHeartbeat = this.#now()',
    test: {
      file: 'adapters/kafka/freshness.test.ts',
      name: 'a heartbeat answer that arrived while the process was frozen does not make the member fresh',
    },
  },
  {
    id: 'finished-offsets-forgotten-with-the-membership',
    file: 'src/forwarder/consume/group-consumer.ts',
    find: 'if (before) recall(partition, before, position)',
    replace: '',
    test: {
      file: 'forwarder/recall.test.ts',
      name: 'offsets that finished but were not committed are not taken again after ',
    },
  },
  {
    id: 'a-commit-before-its-tally',
    file: 'src/forwarder/commit/committer.ts',
    find: 'await this.#ledger.tally(',
    replace: 'void this.#ledger.tally(',
    test: {
      file: 'forwarder/consume/group-consumer.test.ts',
      name: 'a commit is made once the broker has its tally, without partitions that were lost meanwhile',
    },
  },
  {
    id: 'tallies-that-name-no-predecessor',
    file: 'src/forwarder/commit/partition-ledger.ts',
    find: 'predecessor: this.#predecessor,\n      group,',
    replace: 'predecessor: null,\n      group,',
    test: { file: 'forwarder/tallies.test.ts', name: 'the chain covers committed offsets once' },
  },
  {
    id: 'records-lost-to-retention-not-reported',
    file: 'src/forwarder/consume/group-consumer.ts',
    find: 'this.#offsetsLost(partition, next, last)',
    replace: '',
    test: {
      file: 'forwarder/consume/group-consumer.test.ts',
      name: 'records that retention removed before they were read are reported once, and reading continues at the log start',
    },
  },
  {
    id: 'numbers-of-a-log-that-is-gone-count-on',
    file: 'src/forwarder/consume/group-consumer.ts',
    find: 'this.#committed.beginAgain(partition, before, from)',
    replace: 'this.#committed.beginAgain(partition, before, to)',
    test: {
      file: 'forwarder/consume/group-consumer.test.ts',
      name: 'where the log was cut off the position is set back at once, and what gets the same offsets is taken',
    },
  },
  {
    id: 'reading-goes-on-at-the-end-of-a-topic-made-again',
    file: 'src/adapters/kafka/group/group-fetch.ts',
    find: 'Math.min(since ?? high, high)',
    replace: 'Math.max(since ?? high, high)',
    test: {
      file: 'adapters/kafka/group/group-fetch.test.ts',
      name: 'of a topic that was made again all is read, also what came before anybody noticed',
    },
  },
  {
    id: 'a-call-taken-for-the-one-that-lay-there-before',
    file: 'src/forwarder/plan/due-run.ts',
    find: 'timestamp > work.appendedAt + brokerSkewMs',
    replace: 'timestamp > Infinity',
    test: {
      file: 'forwarder/plan/due-run.test.ts',
      name: 'what was appended a minute after a run is no call of it: its log was cut off, or made again',
    },
  },
  {
    id: 'a-stop-that-does-not-wait-for-what-is-on-the-wire',
    file: 'src/forwarder/forwarder.ts',
    find: 'while (dispatcher.inFlight > 0 && steadyClock.now() < deadline) await delay(5)',
    replace: '',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a stop lets requests on the wire end, starts no more, and commits what finished',
    },
  },
  {
    id: 'bugs-survived-without-end',
    file: 'src/restarts.ts',
    find: 'if (bugs.length > rule.bugs) throw error',
    replace: 'if (bugs.length > 100) throw error',
    test: {
      file: 'restarts.test.ts',
      name: 'a part survives a bounded number of bugs, then fails with the last one',
    },
  },
  {
    id: 'the-offset-of-a-record-finished-before-its-dead-letter-is-in-kafka',
    file: 'src/forwarder/settle/settler.ts',
    find: 'this.#deadLetters.write(work, deadLetter, bytes, done)',
    replace: 'this.#deadLetters.write(work, deadLetter, bytes, () => {})\n    setImmediate(done)',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a record that is not a call is finished only once the broker has its dead letter',
    },
  },
  {
    id: 'records-that-are-no-calls-skipped',
    file: 'src/forwarder/plan/call-planner.ts',
    find: 'settler.deadRecord(partition.next(), record, reason, detail, this.#callIn(record))\n      return null',
    replace: 'void [settler, record, reason, detail]\n      partition.next().finishOne(0)\n      return null',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a record that is undecodable or not a valid call becomes a dead letter and stops nothing',
    },
  },
  {
    id: 'final-failures-not-kept',
    file: 'src/forwarder/settle/settler.ts',
    find: 'this.#deadLetters.write(work, deadLetterOf(work, kept, now), delivery.body.length, done)',
    replace: 'void kept\n    setImmediate(done)',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a retry whose last URL fails finally becomes a dead letter that keeps its history',
    },
  },
  {
    id: 'batches-without-a-byte-limit',
    file: 'src/forwarder/settle/record-publisher.ts',
    find: 'batch.length === maxBatchRecords || (batch.length > 0 && bytes + size > maxBatchBytes)',
    replace: 'batch.length === maxBatchRecords',
    test: {
      file: 'forwarder/settle/record-publisher.test.ts',
      name: 'batches are bounded by bytes and by count, and keep the order',
    },
  },
  {
    id: 'rebalances-that-wait-for-no-commit',
    file: 'src/adapters/kafka/patches/index.ts',
    find: '  waitBeforeJoin,\n',
    replace: '',
    test: {
      file: 'adapters/kafka/patches/wait-before-join.test.ts',
      name: 'a rebalance waits for the last commit of a generation, but not forever',
    },
  },
  {
    id: 'patches-installed-without-a-check',
    file: 'src/adapters/kafka/patches/index.ts',
    find: 'checkPatches(patches, load)\n',
    replace: '',
    test: {
      file: 'adapters/kafka/patches/index.test.ts',
      name: 'every patch refuses another version of kafkajs and changes nothing',
    },
  },
  {
    id: 'a-stopped-consumer-that-fetches-for-ever',
    file: 'src/adapters/kafka/patches/index.ts',
    find: '  endFetchersWhenStopped,\n',
    replace: '',
    test: {
      file: 'adapters/kafka/patches/end-fetchers-when-stopped.test.ts',
      name: 'a consumer that is stopped while its brokers change ends, and does not fetch for ever',
    },
  },
  {
    id: 'records-before-the-offset-that-was-asked-for',
    file: 'src/adapters/kafka/wire/read-batches.ts',
    find: 'if (offset >= this.#from) this.#places.add(',
    replace: 'this.#places.add(',
    test: {
      file: 'adapters/kafka/wire/read-batches.test.ts',
      name: 'records before the requested offset are left out',
    },
  },
  {
    id: 'control-records-read-as-calls',
    file: 'src/adapters/kafka/wire/read-batches.ts',
    find: 'const isControl = (attributes & control) !== 0',
    replace: 'const isControl = attributes < 0',
    test: {
      file: 'adapters/kafka/wire/read-batches.test.ts',
      name: 'control records and aborted transactions are left out, compressed or not',
    },
  },
  {
    id: 'requests-sent-during-a-rebalance',
    file: 'src/adapters/kafka/group/group-membership.ts',
    find: "return this.#state !== 'rejoining' && this.isFresh",
    replace: 'return this.isFresh',
    test: {
      file: 'adapters/kafka/patches/wait-before-join.test.ts',
      name: 'a rebalance waits for the last commit of a generation, but not forever',
    },
  },
  {
    id: 'the-first-calls-left-out-where-kafka-has-forgotten-the-group',
    file: 'src/forwarder/consume/group-consumer.ts',
    find: 'partition.reading.restored(Math.max(position ?? 0, logStart))',
    replace: 'partition.reading.restored(position === null ? logStart + 2 : Math.max(position, logStart))',
    test: {
      file: 'pipeline/failures/forgotten-group.test.ts',
      name: 'a forgotten group starts from the oldest remaining call, with duplicates but no loss, and the audit names them',
    },
  },
  {
    id: 'tiers-of-other-deployments-read',
    file: 'src/core/topics.ts',
    find: 'if (!topic.startsWith(names.retryPrefix)) return null\n  const name = topic.slice(names.retryPrefix.length)',
    replace: "const name = topic.split('webhooks.retry.')[1] ?? ''",
    test: {
      file: 'pipeline/delivery/deployments.test.ts',
      name: 'two deployments are separate: neither delivers, retries, lists, deletes or audits anything of the other',
    },
  },
  {
    id: 'a-tally-counted-before-its-commit-is-known',
    file: 'src/core/ledger/tally-chain.ts',
    find: '  candidates.push(kept)\n',
    replace:
      '  candidates.push(kept)\n  verdicts.push({ kept, counts: true, lineage: lineageOf(chain, id)! })\n',
    test: {
      file: 'core/statistics/statistics.test.ts',
      name: 'property: however the ledger is divided among restarts, exactly what was committed counts',
    },
  },
  {
    id: 'statistics-written-without-their-chains',
    file: 'src/operators/statistics/database.ts',
    find: 'for (const [key, state] of chains) putChain.run(key, JSON.stringify(state))',
    replace: 'void [chains, putChain]',
    test: {
      file: 'pipeline/audit/statistics.test.ts',
      name: 'a process that is killed while it folds neither loses a count nor adds one twice',
      within: 'with short sessions',
    },
  },
  {
    id: 'calls-of-erased-users-listed',
    file: 'src/operators/why/user-messages.ts',
    find: 'return erasures.covers(',
    replace: 'return !erasures || !(',
    test: {
      file: 'console/statistics-api.test.ts',
      name: 'statistics, attempts, users’ calls, processes and audits by the API agree with what took place, and with the commands',
    },
  },
  {
    id: 'a-lease-that-takes-an-old-answer-for-news',
    file: 'src/adapters/kafka/group/lease.ts',
    find: 'HEARTBEAT, () => (this.#aliveAt = this.#askedAt)',
    replace: 'HEARTBEAT, () => (this.#aliveAt = performance.now())',
    test: {
      file: 'adapters/kafka/group/lease.test.ts',
      name: 'a holder that was frozen while it waited for an answer does not take the answer for news',
    },
  },
  {
    id: 'a-new-leader-that-is-taken-for-the-old-one',
    file: 'src/adapters/kafka/group/group-fetch.ts',
    find: 'if (isKnown && end < last.to) {',
    replace: 'if (isKnown && end < 0) {',
    test: {
      file: 'adapters/kafka/group/cut-off-log.test.ts',
      name: 'a new leader with other records where something was read is read from where they begin',
    },
  },
  {
    id: 'records-of-a-new-leader-read-before-it-says-where-they-begin',
    file: 'src/adapters/kafka/group/group-fetch.ts',
    find: 'if (errorCode !== 0 && describeErrorCode(errorCode).retriable) {',
    replace: 'if (errorCode > 1_000 && describeErrorCode(errorCode).retriable) {',
    test: {
      file: 'adapters/kafka/group/cut-off-log.test.ts',
      name: 'what a broker does not say of an epoch yet is not read from it, and asked again',
    },
  },
  {
    id: 'a-cut-off-log-forgotten-before-it-was-noted',
    file: 'src/adapters/kafka/group/group-fetch.ts',
    find: 'if (this.#parts.cutOff(topic, partition, from, to)) this.#lastReads.forget(owned)',
    replace:
      'const isNoted = this.#parts.cutOff(topic, partition, from, to)\n    this.#lastReads.forget(owned)\n    if (isNoted) return',
    test: {
      file: 'adapters/kafka/group/cut-off-log.test.ts',
      name: 'what nobody takes note of yet comes again after the next seek',
    },
  },
  {
    id: 'deletions-that-wait-for-no-other-destination',
    file: 'src/core/erasure/deletion-progress.ts',
    find: '[source, ...source.destinations].every(',
    replace: '[source].every(',
    test: {
      file: 'core/erasure/deletion-progress.test.ts',
      name: 'a request is settled once no destination waits, also where another one has failed',
    },
  },
  {
    id: 'syncs-finished-into-a-disabled-source',
    file: 'src/core/settings/computation-rules.ts',
    find: "const fault = sourceFault(found, state)\n      if (fault !== null) return { accepted: false, faults: [fault] }\n      return accepted({ type: 'sync_finished'",
    replace: "return accepted({ type: 'sync_finished'",
    test: {
      file: 'console/computations/sync-crash.test.ts',
      name: 'a sync whose source is disabled meanwhile stays open, and the next one tells its members again',
    },
  },
  {
    id: 'refused-failures-that-hide-later-ones',
    file: 'src/operators/replay/chosen-dead-letters.ts',
    find: "if (id !== null && planned.is === 'sent') this.#met.add(id)",
    replace: 'if (id !== null) this.#met.add(id)',
    test: {
      file: 'console/replays/replay-runner.test.ts',
      name: 'of the failures of a delivery the first is sent that can be, also by a process that goes on',
    },
  },
]
