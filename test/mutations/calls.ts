import type { Mutation } from '../../scripts/mutations/mutation.ts'

/** Calls over HTTP, by the client library and from producers of their own. */
export const calls: readonly Mutation[] = [
  {
    id: 'snappy-of-java-clients-taken-for-one-block',
    file: 'src/adapters/kafka/compression/snappy.ts',
    find: '  if (!isJavaHead(bytes, 0)) {',
    replace: '  if (bytes.length > 0) {',
    test: {
      file: 'adapters/kafka/compression/unpack.test.ts',
      name: 'every stream of the table is read, or cannot be unpacked, as the table says',
    },
  },
  {
    id: 'only-the-first-gzip-member-read',
    file: 'src/adapters/kafka/compression/gzip.ts',
    find: 'if (bytes.length - at <= maxRest) return output.all()',
    replace: 'if (bytes.length > 0) return output.all()',
    test: {
      file: 'adapters/kafka/compression/unpack.test.ts',
      name: 'every stream of the table is read, or cannot be unpacked, as the table says',
    },
  },
  {
    id: 'only-the-first-zstd-frame-read',
    file: 'src/adapters/kafka/compression/zstd.ts',
    find: '    at = end\n',
    replace: '    at = bytes.length\n',
    test: {
      file: 'adapters/kafka/compression/unpack.test.ts',
      name: 'every stream of the table is read, or cannot be unpacked, as the table says',
    },
  },
  {
    id: 'unpacked-without-a-bound',
    file: 'src/adapters/kafka/compression/output.ts',
    find: '    if (bytes > this.left) throw isTooLarge(this.#maxBytes)\n',
    replace: '',
    test: {
      file: 'adapters/kafka/compression/unpack.test.ts',
      name: 'what grows beyond the bound is an error, and what stays just within is read, with every codec',
    },
  },
  {
    id: 'one-broken-batch-fails-the-whole-fetch',
    file: 'src/adapters/kafka/wire/read-batches.ts',
    find: 'if (!(error instanceof UnpackError)) throw error\n    this.#places',
    replace: 'if (first >= 0) throw error\n    this.#places',
    test: {
      file: 'adapters/kafka/group/group-fetch.test.ts',
      name: 'a batch that cannot be unpacked fails no fetch: its offset is read past, and other partitions are read',
    },
  },
  {
    id: 'a-fetch-unpacks-all-that-it-brings',
    file: 'src/adapters/kafka/wire/read-batches.ts',
    find: '    return this.left <= 0',
    replace: '    return this.left < -Infinity',
    test: {
      file: 'adapters/kafka/wire/read-batches.test.ts',
      name: 'one fetch unpacks 64 MB at most: then batches that are compressed wait for the next one',
    },
  },
  {
    id: 'aborted-transactions-read-as-calls',
    file: 'src/adapters/kafka/wire/read-batches.ts',
    find: 'return (attributes & transactional) !== 0 && this.#producers.has(producer)',
    replace: 'return false',
    test: {
      file: 'adapters/kafka/wire/read-batches.test.ts',
      name: 'control records and aborted transactions are left out, compressed or not',
    },
  },
  {
    id: 'one-failing-schema-id-blocks-for-ever',
    file: 'src/adapters/schema-registry/record-reader.ts',
    find: 'if (now - since < maxStuckMs) return error',
    replace: 'if (now >= since) return error',
    test: {
      file: 'adapters/schema-registry/failing-id.test.ts',
      name: 'a record is undecodable once the registry has failed for its schema id alone for five minutes',
    },
  },
  {
    id: 'dead-letters-while-the-registry-is-away',
    file: 'src/adapters/schema-registry/record-reader.ts',
    find: 'if (!(await this.#registry.gives(this.#knownSubject))) {',
    replace: 'if (id < 0) {',
    test: {
      file: 'adapters/schema-registry/failing-id.test.ts',
      name: 'a registry that fails for all ids, refuses the login or is away makes no record undecodable, however long',
    },
  },
  {
    id: 'an-answer-from-before-a-seek-is-taken',
    file: 'src/adapters/kafka/group/group-fetch.ts',
    find: 'position === from && pausedAt === null',
    replace: 'position !== null && from >= 0 && pausedAt === null',
    test: {
      file: 'adapters/kafka/group/group-fetch.test.ts',
      name: 'what is on its way from elsewhere is dropped after a seek, and nothing is left out',
    },
  },
  {
    id: 'open-transactions-not-noticed',
    file: 'src/adapters/kafka/group/group-fetch.ts',
    find: 'this.#parts.transactions?.fetched(topic, partition, stableOffset, end)',
    replace: 'void [stableOffset, end]',
    test: {
      file: 'pipeline/isolation/open-transactions.test.ts',
      name: 'an open transaction among the calls is named by readiness and a metric, and delivery goes on when it ends',
    },
  },
  {
    id: '200-before-kafka-has-acknowledged',
    file: 'src/collector/collector.ts',
    find: 'const { added, repeated } = await pending.end(this.#metrics)',
    replace: 'void pending.end(this.#metrics)\n    const [added, repeated] = [0, 0]',
    test: {
      file: 'collector/collector.test.ts',
      name: 'unacknowledged calls are not remembered: the retry writes them, but not the rest of its batch',
    },
  },
  {
    id: 'records-acknowledged-by-no-replica',
    file: 'src/adapters/kafka/producer/produce-request.ts',
    find: 'const allReplicas = -1',
    replace: 'const allReplicas = 0',
    test: {
      file: 'adapters/kafka/producer/produce-request.test.ts',
      name: 'property: a request has the same bytes as one of kafkajs',
    },
  },
  {
    id: 'a-partition-that-the-answer-does-not-name-counts-as-written',
    file: 'src/adapters/kafka/producer/kafka-producer.ts',
    find: 'if (answer === undefined) this.#retry(one, unnamed())',
    replace: 'if (answer === undefined) this.#end(one, { baseOffset: -1, appendTime: -1 })',
    test: {
      file: 'adapters/kafka/producer/kafka-producer.test.ts',
      name: 'records of a partition that the answer does not name are not written, and only they are sent again',
    },
  },
  {
    id: 'a-leader-that-moved-is-not-asked-for-again',
    file: 'src/adapters/kafka/producer/kafka-producer.ts',
    find: '    await this.#brokers.refresh().catch(() => {})\n',
    replace: '',
    test: {
      file: 'adapters/kafka/producer/kafka-producer.test.ts',
      name: 'records of a partition whose leader moves to a broker that has already answered are written, once',
    },
  },
  {
    id: 'acknowledged-records-are-not-counted',
    file: 'src/adapters/kafka/producer/partition-write.ts',
    find: 'if (accounted === records) return null',
    replace: 'if (accounted <= records || accounted > records) return null',
    test: {
      file: 'adapters/kafka/producer/kafka-producer.test.ts',
      name: 'a mismatch between the record count and the batches is a bug that rejects the whole call',
    },
  },
  {
    id: 'a-number-that-was-given-up-is-used-for-the-next-batch',
    file: 'src/adapters/kafka/producer/kafka-producer.ts',
    find: 'this.#sequences.abandon(one.key, one.sequence)\n      else',
    replace: 'void 0\n      else',
    test: {
      file: 'adapters/kafka/producer/kafka-producer.test.ts',
      name: 'records after an abandoned batch are never mistaken for a duplicate of it',
    },
  },
  {
    id: 'batches-of-one-partition-overtake-each-other',
    file: 'src/adapters/kafka/producer/kafka-producer.ts',
    find: 'if (before === null) {',
    replace: 'if (before === null || before !== null) {',
    test: {
      file: 'adapters/kafka/producer/kafka-producer.test.ts',
      name: 'unanswered records are sent again, in order, before newer ones',
    },
  },
  {
    id: 'no-de-duplication',
    file: 'src/collector/collector.ts',
    find: 'const seen = hash === null ? null : recent.seen(scope, call.messageId, hash)',
    replace: 'const seen = null as ReturnType<typeof recent.seen>',
    test: {
      file: 'collector/collector.test.ts',
      name: 'a duplicate of a call in flight gets the answer of that call, and a duplicate of a written one gets 200',
    },
  },
  {
    id: 'calls-remembered-before-they-are-written',
    file: 'src/collector/recent-calls.ts',
    find: 'if (call.part.isWritten) this.#written.add(call.scope, call.messageId, call.hash)',
    replace: 'this.#written.add(call.scope, call.messageId, call.hash)',
    test: {
      file: 'collector/collector.test.ts',
      name: 'unacknowledged calls are not remembered: the retry writes them, but not the rest of its batch',
    },
  },
  {
    id: 'one-partition-that-fails-fails-the-others',
    file: 'src/adapters/kafka/write/call-batch-writer.ts',
    find: 'for (const one of report.acknowledged) batch.acknowledge(one.batch.partition)',
    replace:
      'if (report.failed.length === 0)\n        for (const one of report.acknowledged) batch.acknowledge(one.batch.partition)',
    test: {
      file: 'adapters/kafka/write/call-batch-writer.test.ts',
      name: 'what a partition has acknowledged is not written again, however often its request comes because of another one',
    },
  },
  {
    id: 'ids-of-all-sources-thrown-together',
    file: 'src/collector/recent-calls.ts',
    find: 'scope = this.#scopes.size',
    replace: 'scope = 0',
    test: { file: 'collector/collector.test.ts', name: 'ids of different sources are kept apart' },
  },
  {
    id: 'no-bound-on-what-the-collector-holds',
    file: 'src/collector/request-budget.ts',
    find: 'return share.calls + count <= this.#limits.calls - this.#calls - count',
    replace: 'return share.calls + count <= Infinity',
    test: {
      file: 'collector/collector.test.ts',
      name: 'a request that exceeds the budget is refused as a whole, before any of it is written',
    },
  },
  {
    id: 'clocks-of-clients-not-corrected',
    file: 'src/core/call/tracking-fields.ts',
    find: 'return isTimestamp(corrected) ? corrected : said',
    replace: 'return isTimestamp(corrected) ? said : corrected',
    test: {
      file: 'collector/collector.test.ts',
      name: 'times are corrected by the client’s clock, except for imports, historical times and explicit timestamps',
    },
  },
  {
    id: 'times-that-the-caller-chose-corrected-by-the-clock',
    file: 'src/core/call/tracking-fields.ts',
    find: '(isExact && timestamp !== null)',
    replace: 'false',
    test: {
      file: 'client/as-given.test.ts',
      name: 'property: a timestamp given to the client arrives unchanged, whatever the client’s clock says',
    },
  },
  {
    id: 'what-the-client-said-of-the-time-corrected',
    file: 'src/core/call/tracking-call.ts',
    find: 'originalTimestamp: saidTimestamp(times)',
    replace: 'originalTimestamp: correctedTimestamp(times)',
    test: {
      file: 'collector/collector.test.ts',
      name: 'the time that the client says is kept beside the corrected one, as it was sent',
    },
  },
  {
    id: 'x-forwarded-for-trusted-from-anyone',
    file: 'src/adapters/http/client-address.ts',
    find: 'while (hops.length > 0 && this.trusts(address)) {',
    replace: 'while (hops.length > 0) {',
    test: {
      file: 'adapters/http/client-address.test.ts',
      name: 'X-Forwarded-For is trusted only as far as trusted proxies have written it',
    },
  },
  {
    id: 'the-client-does-not-send-again',
    file: 'src/client/deliver-batch.ts',
    find: 'if (++retries > policy.retries)',
    replace: 'if (++retries > 0) return { failures, lastFault }\n        if (retries > policy.retries)',
    test: {
      file: 'client/delivery-property.test.ts',
      name: 'every accepted call arrives at most once, and arrives or is reported in onError',
    },
  },
  {
    id: 'the-client-does-not-wait-for-one-batch-before-the-next',
    file: 'src/client/analytics.ts',
    find: `      const { failures, lastFault } = await deliverBatch(batch, by)
      this.#lastFault = lastFault
      for (const failure of failures) this.#report(failure)
      this.#queue.settle(batch)
      this.#settled += batch.length
      this.#wakeFlushed()
      this.#turnstile.letIn()
`,
    replace: `      void deliverBatch(batch, by).then(({ failures }) => {
        for (const failure of failures) this.#report(failure)
        this.#queue.settle(batch)
        this.#settled += batch.length
        this.#wakeFlushed()
        this.#turnstile.letIn()
      })
`,
    test: {
      file: 'client/delivery-property.test.ts',
      name: 'the calls of one user arrive in order, whatever fails on the way',
    },
  },
  {
    id: 'a-close-that-does-not-wait',
    file: 'src/client/analytics.ts',
    find: `this.#turnstile.letAllIn()
    await this.flush()`,
    replace: 'this.#turnstile.letAllIn()',
    test: { file: 'client/life.test.ts', name: 'close delivers queued calls' },
  },
  {
    id: 'a-close-that-does-not-say-why',
    file: 'src/client/deliver-batch.ts',
    find: "closedBefore('they could be sent', lastFault)",
    replace: "closedBefore('they could be sent', null)",
    test: {
      file: 'client/reasons.test.ts',
      name: 'what an attempt waited for when close() ended it is the reason',
    },
  },
  {
    id: 'a-field-in-the-wrong-case-is-dropped',
    file: 'src/client/write-call.ts',
    find: 'if (meant !== undefined && !isGiven(call[meant]))',
    replace: 'if (type.length === 0)',
    test: {
      file: 'client/write-call.test.ts',
      name: 'a field in the wrong case is rejected with the right one, instead of being dropped',
    },
  },
  {
    id: 'repeats-counted-as-flagged',
    file: 'src/collector/call-batch-sink.ts',
    find: "if (isFlagged && result === 'accepted')",
    replace: 'if (isFlagged)',
    test: {
      file: 'collector/hygiene.test.ts',
      name: 'addresses are truncated, and bots dropped or flagged, at once when the source says so, and counted',
    },
  },
]
