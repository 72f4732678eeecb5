import type { Mutation } from '../../scripts/mutations/mutation.ts'

/** What is tried again, when, and for how long. */
export const retries: readonly Mutation[] = [
  {
    id: 'failures-that-may-pass-not-tried-again',
    file: 'src/core/delivery/outcome.ts',
    find: `    case 'status_5xx':
    case 'status_429':
    case 'network':
    case 'tls':
    case 'blocked':
    case 'proxy':
    case 'no_token':
    case 'deferred':`,
    replace: `    case 'deferred':`,
    test: { file: 'core/delivery/disposition.test.ts', name: 'one URL: ' },
  },
  {
    id: 'a-window-twice-as-long',
    file: 'src/core/delivery/disposition.ts',
    find: 'return Math.min(firstAttemptAt ?? now, firstScheduledAt ?? now) + policy.windowMs',
    replace: 'return Math.min(firstAttemptAt ?? now, firstScheduledAt ?? now) + policy.windowMs * 2',
    test: {
      file: 'core/delivery/disposition.test.ts',
      name: 'an endpoint that always fails gets attempts over the whole window, and then the delivery expires',
    },
  },
  {
    id: 'a-window-of-its-own-ignored',
    file: 'src/core/delivery/own-schedule.ts',
    find: 'const windowMs = Math.min(ownMs ?? Infinity, deployment.windowMs)',
    replace: 'const windowMs = Math.max(ownMs ?? 0, deployment.windowMs)',
    test: {
      file: 'pipeline/delivery/tiers.test.ts',
      name: 'destinations retry by schedules of their own, beside others that have the deployment’s',
    },
  },
  {
    id: 'a-second-attempt-where-there-is-to-be-none',
    file: 'src/core/delivery/disposition.ts',
    find: 'policy.isOneAttempt ? retriable.filter(({ outcome }) => isPutOff(outcome.kind)) : retriable',
    replace: 'retriable',
    test: {
      file: 'core/delivery/own-schedule.test.ts',
      name: 'with no tiers a failed attempt is the last one, and what was put off waits for its attempt',
    },
  },
  {
    id: 'tiers-of-its-own-ignored',
    file: 'src/core/delivery/own-schedule.ts',
    find: 'tiers: chosen.length > 0 ? chosen : deployment.tiers,',
    replace: 'tiers: deployment.tiers,',
    test: {
      file: 'pipeline/delivery/tiers.test.ts',
      name: 'destinations retry by schedules of their own, beside others that have the deployment’s',
    },
  },
  {
    id: 'a-schedule-set-unchecked',
    file: 'src/core/settings/destination-options.ts',
    find: 'if (!isChanged || !deployment) return []',
    replace: 'if (isChanged || !deployment) return []',
    test: {
      file: 'core/settings/decide.test.ts',
      name: 'a schedule that the deployment cannot keep is refused when it is set, and one that stands is left alone',
    },
  },
  {
    id: 'a-later-call-sent-while-its-user-is-blocked',
    file: 'src/forwarder/send/dispatcher.ts',
    find: 'if (active.isOrdered && active.destination.order!.isBlocked(active)) {',
    replace: 'if (active.isOrdered && active.destination.order!.isBlocked(active) && active.attempts < 0) {',
    test: {
      file: 'pipeline/delivery/strict-order.test.ts',
      name: 'a user’s calls arrive in order though one fails three times, and other users’ arrive meanwhile',
    },
  },
  {
    id: 'a-parked-call-tried-beside-the-one-before-it',
    file: 'src/core/ordering/parked-lines.ts',
    find: 'return line?.head ?? call',
    replace: 'return call',
    test: {
      file: 'pipeline/delivery/strict-order.test.ts',
      name: 'a user’s calls arrive in order though one fails three times, and other users’ arrive meanwhile',
    },
  },
  {
    id: 'a-user-free-before-all-that-is-parked-has-ended',
    file: 'src/core/ordering/blocked-lines.ts',
    find: 'if (open > 0 || places.size > 0) continue',
    replace: 'if (open > 0) continue',
    test: {
      file: 'core/ordering/strict-order.test.ts',
      name: 'no call is attempted before those of its user before it have ended, whoever dies, and all end',
    },
  },
  {
    id: 'whose-calls-lie-parked-not-read-with-a-partition',
    file: 'src/forwarder/plan/call-planner.ts',
    find: 'const pending = order?.pending(partition)',
    replace: 'const pending = order && null',
    test: {
      file: 'pipeline/delivery/strict-order.test.ts',
      name: 'a forwarder that is killed leaves its users blocked',
    },
  },
  {
    id: 'a-user-that-waits-without-end',
    file: 'src/core/ordering/strict-terms.ts',
    find: 'Math.min(firstAttemptAt ?? now, firstScheduledAt ?? now) + waitMs',
    replace: 'Math.max(firstAttemptAt ?? now, firstScheduledAt ?? now, now) + waitMs + 9e9',
    test: {
      file: 'pipeline/delivery/strict-order.test.ts',
      name: 'past the number of calls and past the time that may wait, a user is released, counted, and nothing is lost',
    },
  },
  {
    id: 'a-parked-call-tried-at-once-by-its-next-owner',
    file: 'src/forwarder/plan/parked-calls.ts',
    find: 'if (head === call) this.#waitAfterOthers(call)',
    replace: '',
    test: {
      file: 'forwarder/plan/parked-calls.test.ts',
      name: 'of parked calls that had another owner, those that it may have tried wait for the first delay again',
    },
  },
  {
    id: 'no-window-in-the-record',
    file: 'src/core/delivery/disposition.ts',
    find: `firstAttemptAt: round.firstAttemptAt,
    firstScheduledAt: delivery.firstScheduledAt ?? scheduledAt,`,
    replace: `firstAttemptAt: null,
    firstScheduledAt: scheduledAt,`,
    test: {
      file: 'pipeline/delivery/tiers.test.ts',
      name: 'an undeliverable call goes through the tiers until its window ends',
    },
  },
  {
    id: 'no-schedule-count-in-the-record',
    file: 'src/core/delivery/disposition.ts',
    find: 'timesScheduled: delivery.timesScheduled + (scheduledAt === null ? 0 : 1),',
    replace: 'timesScheduled: 0,',
    test: {
      file: 'pipeline/delivery/tiers.test.ts',
      name: 'an undeliverable call goes through the tiers until its window ends',
    },
  },
  {
    id: 'retries-sent-before-they-are-due',
    file: 'src/forwarder/plan/retry-planner.ts',
    find: "if (dueAt > Date.now()) return { kind: 'until', at: dueAt }",
    replace: '',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a retry is never early, and is sent within a second of its due time',
    },
  },
  {
    id: 'no-attempt-of-its-own',
    file: 'src/core/delivery/disposition.ts',
    find: 'return attempts === 0 && firstScheduledAt !== null &&',
    replace: 'return attempts < 0 && firstScheduledAt !== null &&',
    test: {
      file: 'pipeline/delivery/deferred-runs.test.ts',
      name: 'while an endpoint answers 503 for a whole window, each call is tried at least once before it is given up',
    },
  },
  {
    id: 'a-run-that-loses-what-was-not-taken',
    file: 'src/forwarder/plan/retry-planner.ts',
    find: 'settler.putOffRest(due.work, run, destination, due.rest, refused)',
    replace: 'settler.putOffRest(due.work, run, destination, due.rest.slice(1), refused)',
    test: {
      file: 'pipeline/delivery/deferred-runs.test.ts',
      name: 'calls for an endpoint that is down lie in the tiers as few small records, and arrive once each when it is back',
    },
  },
  {
    id: 'a-call-put-off-for-one-url-rendered-for-all',
    file: 'src/forwarder/plan/due-run.ts',
    find: 'deliveryIdIn(this.run, call.messageId), this.run.urlId)',
    replace: 'deliveryIdIn(this.run, call.messageId))',
    test: {
      file: 'pipeline/delivery/deferred-runs.test.ts',
      name: 'a call that is put off for one URL goes there, whatever the template of another URL needs',
    },
  },
  {
    id: 'a-run-held-in-part',
    file: 'src/forwarder/settle/settler.ts',
    find: 'if (active.work.isOfRun && this.#canRefer(active)) {',
    replace: 'if (false as boolean) {',
    test: {
      file: 'pipeline/delivery/deferred-runs.test.ts',
      name: 'a run that was begun when its destination is paused is held in what is left of it, and nothing comes twice',
    },
  },
  {
    id: 'retry-after-ignored',
    file: 'src/core/delivery/disposition.ts',
    find: 'const of = ({ retryAfterMs }: Outcome) => retryAfterMs ?? 0',
    replace: 'const of = ({ retryAfterMs }: Outcome) => (retryAfterMs ?? 0) * 0',
    test: {
      file: 'core/delivery/disposition.test.ts',
      name: 'Retry-After: the smallest tier that covers it, and no attempt before it has passed',
    },
  },
  {
    id: 'a-tier-that-is-due-sent-before-its-retry-after',
    file: 'src/core/delivery/disposition.ts',
    find: 'if (record.notBefore === null || record.notBefore <= now) return null',
    replace: 'if (record.notBefore !== undefined) return null',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a retry that is due before its Retry-After is rescheduled without an attempt',
    },
  },
  {
    id: 'finished-before-its-retry-is-in-kafka',
    file: 'src/forwarder/settle/record-publisher.ts',
    find: '    const refused = await this.#sink.append(topic, batch, batch[0]!.parking ? placed : undefined)\n',
    replace: '    void this.#sink.append(topic, batch)\n    const refused: OutgoingRecord[] = []\n',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a failed call is finished only once the broker has its retry',
    },
  },
  {
    id: 'tiers-that-left-the-settings-not-read',
    file: 'src/cli/open-forwarder.ts',
    find: 'retries: sourceOf(`${config.groupId}.retries`, retryTopics),',
    replace:
      'retries: sourceOf(`${config.groupId}.retries`, config.retryTiers.map(({ name }) => topics.retry(name))),',
    test: {
      file: 'pipeline/delivery/tiers.test.ts',
      name: 'a tier that is removed from the settings still drains',
    },
  },
  {
    id: 'a-replay-that-keeps-the-old-window',
    file: 'src/core/delivery/replay.ts',
    find: '...newWindow(now),',
    replace: '...newWindow(now),\n      firstScheduledAt: delivery.firstScheduledAt,',
    test: {
      file: 'core/delivery/replay.test.ts',
      name: 'a delivery starts over, at every current URL of its destination, with the same id and body',
    },
  },
  {
    id: 'attempts-after-the-window',
    file: 'src/core/delivery/disposition.ts',
    find: 'return now > windowEnd(record, now, policy)',
    replace: 'return now > windowEnd(record, now, policy) + Infinity',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a retry that comes due after its window becomes a dead letter without a request, and the ledger records it',
    },
  },
  {
    id: 'counters-of-retries-not-checked',
    file: 'src/forwarder/plan/retry-planner.ts',
    find: "if (fault !== null) throw new Refusal('undecodable', fault)",
    replace: 'void fault',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a retry with counters that no delivery can reach is kept unchanged, and the next retry is sent',
    },
  },
  {
    id: 'a-bug-at-noting-an-attempt-ends-the-process',
    file: 'src/forwarder/send/dispatcher.ts',
    find: `      bug = error
`,
    replace: `      throw error
`,
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'an exception while recording an attempt fails only that delivery',
    },
  },
  {
    id: 'windows-that-begin-in-the-future',
    file: 'src/core/delivery/clock-ahead.ts',
    find: 'time > latest ? appendedAt : time',
    replace: 'time > latest ? time : time',
    test: {
      file: 'core/delivery/clock-ahead.test.ts',
      name: 'a first attempt or scheduling after the broker appended the record does not lengthen the window',
    },
  },
  {
    id: 'an-untrusted-certificate-taken-for-final',
    file: 'src/core/delivery/outcome.ts',
    find: "    case 'tls':\n    case 'blocked':\n    case 'proxy':",
    replace: "    case 'proxy':",
    test: {
      file: 'pipeline/delivery/outcomes.test.ts',
      name: 'what could never be sent is retried within its window, is an alarm once, and ends with its reason',
    },
  },
  {
    id: 'secrets-kept-in-an-echoed-response',
    file: 'src/adapters/webhook/attempt.ts',
    find: 'this.#kept && this.#owner.secrets.strike(this.#kept, this.#keptBytes)',
    replace: 'this.#kept && this.#kept.subarray(0, this.#keptBytes)',
    test: {
      file: 'adapters/webhook/own-secrets.test.ts',
      name: 'the stored response does not contain the header values or secrets of its request',
    },
  },
  {
    id: 'secrets-kept-of-a-request',
    file: 'src/adapters/webhook/shown-request.ts',
    find: 'secrets.strike(Buffer.from(own), keptRequestBytes).toString()',
    replace: 'own.slice(0, keptRequestBytes)',
    test: {
      file: 'adapters/webhook/transport.test.ts',
      name: 'of a request that failed is kept what went out, without secrets, and the header of what came back',
    },
  },
  {
    id: 'signatures-kept-of-a-request',
    file: 'src/adapters/webhook/endpoint.ts',
    find: 'signature: signature && hidden,',
    replace: 'signature,',
    test: {
      file: 'adapters/webhook/transport.test.ts',
      name: 'of a request that failed is kept what went out, without secrets, and the header of what came back',
    },
  },
  {
    id: 'requests-of-successes-kept-by-default',
    file: 'src/adapters/webhook/attempt.ts',
    find: "(kind !== 'success' || this.#owner.keepsSuccesses)",
    replace: 'this.#startedAt > 0',
    test: {
      file: 'adapters/webhook/transport.test.ts',
      name: 'of a success nothing is kept, unless everything is recorded: then the first KB of the response',
    },
  },
  {
    id: 'a-schema-id-that-is-refused-waited-for',
    file: 'src/adapters/schema-registry/registry.ts',
    find: 'if (isRefusal(error))',
    replace: 'if (isRefusal(error) && error.status < 0)',
    test: {
      file: 'pipeline/delivery/schema-ids.test.ts',
      name: 'a schema id that the registry refuses makes only its record undecodable, and does not stop a collector’s start',
    },
  },
  {
    id: 'each-unknown-schema-id-asked-for',
    file: 'src/adapters/schema-registry/record-reader.ts',
    find: 'if (this.#asked.size >= maxAskedIds) return false',
    replace: '',
    test: {
      file: 'pipeline/delivery/schema-ids.test.ts',
      name: 'of a thousand unknown schema ids only a few are requested, and calls behind them do not wait for the rest',
    },
  },
  {
    id: 'calls-read-again-and-kept-for-ever',
    file: 'src/adapters/kafka/read/stretch-reader.ts',
    find: 'this.#stretches[0]!.readAt < before',
    replace: 'this.#stretches[0]!.readAt < before - 1e9',
    test: {
      file: 'adapters/kafka/read/ranges.test.ts',
      name: 'records that lie together are read once for all who ask soon, and are let go after a while',
    },
  },
]
