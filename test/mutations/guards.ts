import type { Mutation } from '../../scripts/mutations/mutation.ts'

const suppressed = (name: string): Mutation['test'] => ({
  file: 'pipeline/privacy/suppressions.test.ts',
  name,
})

/** Quotas of sources, and suppressed users. */
export const guards: readonly Mutation[] = [
  {
    id: 'calls-beyond-a-quota-not-counted',
    file: 'src/collector/source-rates.ts',
    find: 'this.#quotaOf(source, now)?.take(now, taken)',
    replace: '',
    test: {
      file: 'collector/quota.test.ts',
      name: 'a source over its quota is refused whole until Retry-After has passed, and then loses nothing',
    },
  },
  {
    id: 'calls-that-were-not-written-use-up-the-quota',
    file: 'src/collector/collector.ts',
    find: 'this.#rates.giveBack(source, added)',
    replace: '',
    test: {
      file: 'collector/collector.test.ts',
      name: 'calls that are not written take nothing of what their source may send',
    },
  },
  {
    id: 'a-changed-quota-that-takes-no-effect',
    file: 'src/collector/source-rates.ts',
    find: 'if (quota?.maxRate !== maxRate) {',
    replace: 'if (quota === undefined) {',
    test: {
      file: 'collector/quota.test.ts',
      name: 'a quota takes effect at once when it is set, changed and taken away',
    },
  },
  {
    id: 'one-quota-for-all-sources',
    file: 'src/collector/source-rates.ts',
    find: '#quotaOf({ id, maxRate }: RatedSource, now: number)',
    replace: '#quotaOf({ maxRate }: RatedSource, now: number, id = "")',
    test: {
      file: 'collector/source-rates.test.ts',
      name: 'property: whatever a source sends, it gets its rate, its burst and at most one batch more',
    },
  },
  {
    id: 'a-large-batch-that-costs-no-more-than-its-bucket',
    file: 'src/core/pacing/token-bucket.ts',
    find: 'if (waitMs === 0) this.#tokens -= count',
    replace: 'if (waitMs === 0) this.#tokens -= Math.min(count, this.#tokens)',
    test: {
      file: 'core/pacing/token-bucket.test.ts',
      name: 'more than it ever holds is given at once, and made up for afterwards',
    },
  },
  {
    id: 'calls-of-suppressed-users-collected',
    file: 'src/collector/collector.ts',
    find: 'this.#suppressions.isEmpty ? null : this.#suppressions',
    replace: 'this.#suppressions.isEmpty ? this.#suppressions : null',
    test: suppressed(
      'a collector drops calls of suppressed users, answers as if it had not, and still knows them after a restart',
    ),
  },
  {
    id: 'calls-of-suppressed-users-delivered',
    file: 'src/forwarder/plan/call-planner.ts',
    find: 'isWanted && this.#parts.suppressed.isCallSuppressed(call)',
    replace: 'isWanted && this.#parts.budget.isFull',
    test: suppressed(
      'a forwarder skips calls of suppressed users that came straight to Kafka, but for delete calls, and the audit counts them',
    ),
  },
  {
    id: 'retries-of-suppressed-users-delivered',
    file: 'src/forwarder/plan/erased.ts',
    find: 'return this.#suppressions.covers({ sourceId: retry.sourceId, type, userIds })',
    replace: 'return userIds.length > 5 && type === null',
    test: suppressed(
      'a suppressed user’s retries are skipped when they come due, also after a restart, and pass again afterwards',
    ),
  },
  {
    id: 'a-retry-sent-before-it-is-known-who-is-suppressed',
    file: 'src/forwarder/plan/retry-planner.ts',
    find: 'erased.pending() ?? suppressed.pending()',
    replace: 'erased.pending()',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a retry waits while it is not known who is suppressed, and then is skipped or sent',
    },
  },
  {
    id: 'a-queued-retry-of-a-suppressed-user-sent',
    file: 'src/forwarder/settle/settler.ts',
    find: 'return this.#parts.erased.isDeliveryErased(active) || this.#isSuppressed(active)',
    replace: 'return this.#parts.erased.isDeliveryErased(active)',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'that waits for a slot is not sent once its user is suppressed',
    },
  },
  {
    id: 'a-parked-call-of-an-erased-user-published',
    file: 'src/forwarder/settle/settler.ts',
    find: 'if (this.#parts.erased.isRetryErased(parked, key)) {',
    replace: 'if (false as boolean) {',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a parked call that is let go is not published once its user is erased',
    },
  },
  {
    id: 'a-suppressed-call-that-why-gives-to-its-destination',
    file: 'src/core/ledger/call-life.ts',
    find: 'return isSuppressed(counted) ?',
    replace: 'return isSuppressed([]) ?',
    test: {
      file: 'core/ledger/call-life.test.ts',
      name: 'a call that was skipped for its user is planned for nobody, and says so of everybody who would have got it',
    },
  },
  {
    id: 'calls-beside-a-suppressed-user-sent-again',
    file: 'src/core/replay/replay-facts.ts',
    find: 'const others = tally.records - suppressedOf(tally)',
    replace: 'const others = tally.records',
    test: {
      file: 'core/replay/replay-facts.test.ts',
      name: 'near a change of settings, calls that were delivered beside one of a suppressed user count as delivered',
    },
  },
  {
    id: 'an-invalid-call-that-why-delivers',
    file: 'src/core/ledger/call-life.ts',
    find: 'if (isUndeliverable(place, counted)) return []',
    replace: '',
    test: {
      file: 'core/ledger/call-life.test.ts',
      name: 'a record that never became a delivery shows its fate',
    },
  },
  {
    id: 'delete-calls-suppressed-with-the-user',
    file: 'src/core/suppression/suppressions.ts',
    find: "if (this.#size === 0 || type === 'delete') return false",
    replace: 'if (this.#size === 0) return false',
    test: {
      file: 'core/suppression/suppressions.test.ts',
      name: 'delete calls are exempt: receivers must learn that a user is to be forgotten',
    },
  },
  {
    id: 'users-forgotten-when-others-are-not-suppressed-any-more',
    file: 'src/core/suppression/suppressions.ts',
    find: 'if (((next - home) & mask) < ((next - free) & mask)) continue',
    replace: 'if (home >= 0) continue',
    test: {
      file: 'core/suppression/suppressions.test.ts',
      name: 'a million users take 25 MB, and are all found while half of them go again',
    },
  },
  {
    id: 'a-suppression-that-has-ended-listed',
    file: 'src/operators/suppression/suppressions.ts',
    find: 'if (!known.isNewest(sourceId, userId, offset)) continue',
    replace: '',
    test: {
      file: 'console/regulations-api.test.ts',
      name: 'users are suppressed at every source or at some, shown page by page, and no more once that has ended',
    },
  },
  {
    id: 'deleted-before-they-are-suppressed',
    file: 'src/operators/suppression/suppressions.ts',
    find: 'const report = await suppressions.suppress(given, options)\n  return { report, deletion: await remove() }',
    replace:
      'const deletion = await remove()\n  return { report: await suppressions.suppress(given, options), deletion }',
    test: {
      file: 'console/regulations-api.test.ts',
      name: 'users whose suppression fails are not deleted: it comes first',
    },
  },
  {
    id: 'quiet-topics-are-never-compacted',
    file: 'src/adapters/kafka/write/compaction-marks.ts',
    find: 'for (const topic of topics) await markPartitions(producer, topic)',
    replace: 'await Promise.all(topics.map((topic) => producer.ready(topic)))\n      void markPartitions',
    test: {
      file: 'pipeline/privacy/compaction.test.ts',
      name: 'a user whose suppression has ended leaves its topic, also if nobody is suppressed any more, and all others stay',
      within: 'on a broker that looks for what can be compacted twice a second',
    },
  },
  {
    id: 'compaction-waits-until-half-of-a-topic-is-replaced',
    file: 'src/adapters/kafka/admin/topic-specs.ts',
    find: "    'max.compaction.lag.ms': String(replacedKeptMs),\n",
    replace: '',
    test: {
      file: 'adapters/kafka/admin/topics.test.ts',
      name: 'setup creates every topic with exactly the specified settings, and a second run changes nothing',
    },
  },
  {
    id: 'an-exception-from-a-suppression-of-every-source',
    file: 'src/operators/suppression/suppressions.ts',
    find: 'if (sourceIds) checkNotEverywhere(userIds, known, options)',
    replace: '',
    test: {
      file: 'console/regulations-api.test.ts',
      name: 'a regulation with anything wrong in it is refused with every fault by field, and changes nothing',
    },
  },
]
