import type { Mutation } from '../../scripts/mutations/mutation.ts'

/** Endpoints apart from one another, and users in order. */
export const isolation: readonly Mutation[] = [
  {
    id: 'as-much-fetched-of-what-is-compressed-as-of-what-is-not',
    file: 'src/adapters/kafka/group/group-fetch.ts',
    find: 'Math.floor(maxBytes.all / this.#growth)',
    replace: 'maxBytes.all',
    test: {
      file: 'adapters/kafka/group/group-fetch.test.ts',
      name: 'what a fetch brings takes no more memory compressed than plain',
    },
  },
  {
    id: 'no-limit-of-requests-in-flight-for-an-endpoint',
    file: 'src/core/pacing/endpoint-pace.ts',
    find: 'return this.#limit.allows(inFlight, now, isProbe) && this.#onWire < this.#window',
    replace: 'return inFlight >= 0 && now >= 0 && !(isProbe && false) && this.#onWire < this.#window',
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'an endpoint that hangs uses up only its own requests in flight',
    },
  },
  {
    id: 'no-shares-of-the-slots',
    file: 'src/forwarder/send/slots.ts',
    find: 'if (user.inFlight >= free) {',
    replace: 'if (user.inFlight > this.#max) {',
    test: { file: 'forwarder/send/slots.test.ts', name: 'one endpoint alone gets half of the slots' },
  },
  {
    id: 'no-pacing-of-request-starts',
    file: 'src/core/pacing/busy-window.ts',
    find: 'return Math.floor(this.#size)',
    replace: 'return this.#max',
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'while answers keep the process busy, few requests are on the wire, in turns, and there is plenty to do',
    },
  },
  {
    id: 'requests-delayed-though-the-process-is-idle',
    file: 'src/forwarder/send/slots.ts',
    find: 'if (this.#waiting.length > 0 && this.#window.turned(this.#taken)) this.grantWaiting(steadyClock.now())',
    replace: '',
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'deliveries for endpoints that hang block no others: an idle process sends more',
    },
  },
  {
    id: 'records-taken-despite-a-full-backlog',
    file: 'src/forwarder/consume/partition-scheduler.ts',
    find: 'if (!this.#hasPlenty()) this.#runTurn()',
    replace: 'this.#runTurn()',
    test: {
      file: 'forwarder/consume/partition-scheduler.test.ts',
      name: 'nothing is taken while there is plenty to do, and taking resumes when there is not',
    },
  },
  {
    id: 'memory-kept-by-a-lost-retry',
    file: 'src/forwarder/settle/retry-records.ts',
    find: '  dropped(): void {\n    this.#parts.budget.free(this.bytes)\n',
    replace: '  dropped(): void {\n',
    test: {
      file: 'forwarder/settle/retry-records.test.ts',
      name: 'a retry whose partition is lost before it is published releases its memory and finishes nothing',
    },
  },
  {
    id: 'no-bound-on-what-is-in-flight',
    file: 'src/forwarder/send/memory-budget.ts',
    find: 'return this.#count >= this.#maxCount || this.#bytes >= this.#maxBytes',
    replace: 'return this.#count >= this.#maxCount',
    test: {
      file: 'forwarder/send/memory-budget.test.ts',
      name: 'the budget is full by count or by bytes, whichever is reached first',
    },
  },
  {
    id: 'a-tier-that-is-read-long-before-anything-is-due',
    file: 'src/forwarder/consume/group-consumer.ts',
    find: 'if (ms > restMs) this.#pause(partition)',
    replace: 'if (ms > restMs) return',
    test: {
      file: 'forwarder/consume/group-consumer.test.ts',
      name: 'a partition whose head is due later is paused until shortly before, whatever finishes meanwhile',
    },
  },
  {
    id: 'a-queue-that-is-deferred-in-one-go',
    file: 'src/forwarder/send/deferrals.ts',
    find: 'const max = this.#left',
    replace: 'const max = Infinity',
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'a mass deferral by a breaker, shedding or a lane lets other work run in between',
    },
  },
  {
    id: 'retries-that-come-due-together-and-take-a-whole-turn',
    file: 'src/forwarder/plan/retry-planner.ts',
    find: "if (isDeferred && !dispatcher.deferrals.takeOne()) return { kind: 'turn' }",
    replace: '',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'retries that come due together at an endpoint that takes nothing leave time for other work in each turn',
    },
  },
  {
    id: 'tier-hops-without-a-bound',
    file: 'src/forwarder/plan/retry-planner.ts',
    find: "      if (!dispatcher.deferrals.takeOne()) return { kind: 'turn' }\n      settler.hop(",
    replace: '      settler.hop(',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'retries that come due together before their Retry-After are rescheduled a few at a time',
    },
  },
  {
    id: 'a-partition-that-is-read-without-end',
    file: 'src/forwarder/consume/group-consumer.ts',
    find: '    this.#gate.filled(partition)\n',
    replace: '',
    test: { file: 'forwarder/consume/group-consumer.test.ts', name: 'a full partition is paused' },
  },
  {
    id: 'a-slow-endpoint-shed-although-it-is-alone',
    file: 'src/forwarder/send/head-of-line-monitor.ts',
    find: "if (held === 'none') {",
    replace: 'if (!admission.isOverdue(now)) {',
    test: {
      file: 'forwarder/send/head-of-line-monitor.test.ts',
      name: 'a slow endpoint that blocks no other only causes lag: nothing is deferred, however long it takes',
    },
  },
  {
    id: 'no-shedding-at-an-endpoint-that-blocks-others',
    file: 'src/forwarder/send/head-of-line-monitor.ts',
    find: 'endpoint.shed(now)',
    replace: 'void endpoint',
    test: {
      file: 'forwarder/send/head-of-line-monitor.test.ts',
      name: 'an endpoint that blocks work of an idle one sheds after 2 s, not before, and the other is served',
    },
  },
  {
    id: 'a-breaker-that-never-opens',
    file: 'src/core/pacing/breaker.ts',
    find: "{ when: 'too_many', to: 'open', by: 'wait' },",
    replace: '',
    test: { file: 'core/pacing/endpoint-pace.test.ts', name: 'for hours gets a bounded number of requests' },
  },
  {
    id: 'a-breaker-without-a-ramp',
    file: 'src/core/pacing/breaker.ts',
    find: "success: [{ to: 'ramp', by: 'widen' }],",
    replace: "success: [{ to: 'closed', by: 'forget' }],",
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'half-open, one probe is on the wire and other deliveries are deferred',
    },
  },
  {
    id: 'a-breaker-whose-waits-do-not-grow',
    file: 'src/core/pacing/breaker.ts',
    find: 'const coolDownMs = Math.min(breaker.coolDownMs * 2, limits.maxCoolDownMs)',
    replace: 'const coolDownMs = limits.coolDownMs',
    test: { file: 'core/pacing/endpoint-pace.test.ts', name: 'for hours gets a bounded number of requests' },
  },
  {
    id: 'call-deferred-for-the-rest-of-the-cool-down',
    file: 'src/core/pacing/endpoint-pace.ts',
    find: 'waitMs: Math.max(waitMs, coolDownMs)',
    replace: 'waitMs',
    test: {
      file: 'core/pacing/endpoint-pace.test.ts',
      name: 'a delivery that a breaker defers waits for the whole cool-down, however little of it is left',
    },
  },
  {
    id: 'a-timer-for-each-retry-that-comes-due',
    file: 'src/core/pacing/limits.ts',
    find: 'const minRestMs = 100',
    replace: 'const minRestMs = 1',
    test: {
      file: 'forwarder/consume/partition-scheduler.test.ts',
      name: 'records that come due one by one are taken several at a time',
    },
  },
  {
    id: 'no-retry-budget',
    file: 'src/forwarder/send/endpoint-queue.ts',
    find: 'attempt.active.wasAttempted && !this.#pace.mayRetry(now)',
    replace: 'attempt.active.wasAttempted && now < 0',
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'failing retries use up the budget; first attempts, even late ones, and healthy endpoints do not',
    },
  },
  {
    id: 'a-budget-that-forgets-what-was-spent',
    file: 'src/core/pacing/retry-budget.ts',
    find: 'this.#allFailed++',
    replace: '',
    test: {
      file: 'core/pacing/endpoint-pace.test.ts',
      name: 'failing retries stay within the budget, however many there are',
    },
  },
  {
    id: 'requested-pause-not-kept',
    file: 'src/core/pacing/breaker.ts',
    find: "busy: [{ to: 'paused', by: 'wait' }],",
    replace: 'busy: [],',
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'a 429 with Retry-After pauses the endpoint, not just the delivery, and long waits are deferred until the pause ends',
    },
  },
  {
    id: 'time-outs-do-not-lower-the-limit',
    file: 'src/core/pacing/concurrency-limit.ts',
    find: "this.#apply('overload', 0, least)",
    replace: '',
    test: {
      file: 'core/pacing/concurrency-limit.test.ts',
      name: 'timeouts halve the limit once for all requests in flight, even below the start, and success brings it back',
    },
  },
  {
    id: 'overload-forgotten-with-the-breaker',
    file: 'src/core/pacing/concurrency-limit.ts',
    find: 'this.#threshold = this.#limit',
    replace: '',
    test: {
      file: 'forwarder/shared-endpoints.test.ts',
      name: 'an endpoint that takes five a second gets no more at once',
    },
  },
  {
    id: 'each-member-as-if-it-were-alone',
    file: 'src/core/pacing/concurrency-limit.ts',
    find: 'Math.round(start * this.#group.share)',
    replace: 'Math.round(start)',
    test: { file: 'forwarder/shared-endpoints.test.ts', name: 'a hundred with a backlog at the start' },
  },
  {
    id: 'no-rest-after-a-refusal',
    file: 'src/core/pacing/concurrency-limit.ts',
    find: 'now >= this.#restsUntil',
    replace: 'now >= 0',
    test: {
      file: 'forwarder/shared-endpoints.test.ts',
      name: 'a hundred sharing an endpoint that answers 429',
    },
  },
  {
    id: 'no-turns-where-one-of-each-is-too-many',
    file: 'src/core/pacing/concurrency-limit.ts',
    find: 'if (this.#limit >= this.#bounds.min) return true',
    replace: 'if (this.#limit >= 0) return true',
    test: {
      file: 'forwarder/shared-endpoints.test.ts',
      name: 'a hundred sharing an endpoint of five a second',
    },
  },
  {
    id: 'what-is-away-is-taken-for-busy',
    file: 'src/core/pacing/endpoint-pace.ts',
    find: "kind === 'timeout' && this.#limit.isLowest",
    replace: "kind !== 'timeout' && this.#limit.isLowest",
    test: { file: 'forwarder/shared-endpoints.test.ts', name: 'once it answers again' },
  },
  {
    id: 'a-503-does-not-lower-the-limit',
    file: 'src/core/pacing/concurrency-limit.ts',
    find: 'if (this.#unavailable <= seldom) return',
    replace: 'if (this.#unavailable <= 1) return',
    test: {
      file: 'forwarder/shared-endpoints.test.ts',
      name: 'a hundred sharing an endpoint that answers 503',
    },
  },
  {
    id: 'wavering-taken-for-queueing',
    file: 'src/core/pacing/concurrency-limit.ts',
    find: 'const standardErrors = 2',
    replace: 'const standardErrors = 0',
    test: { file: 'core/pacing/concurrency-limit.test.ts', name: 'a receiver whose times waver' },
  },
  {
    id: 'no-order-of-a-key',
    file: 'src/forwarder/send/lanes.ts',
    find: `    lane.push(delivery)
    return isFull ? 'crowded' : 'waits'`,
    replace: "    return isFull ? 'crowded' : 'turn'",
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'first attempts of one key at one destination run one after another, and different keys in parallel',
    },
  },
  {
    id: 'the-heap-let-grow',
    file: 'src/adapters/bound-heap.ts',
    find: "collections.observe({ entryTypes: ['gc'] })",
    replace: '',
    test: {
      file: 'adapters/bound-heap.test.ts',
      name: 'a forwarder’s young generation grows to 32 MB and no further, and that of a sync to at most 8 MB',
    },
  },
  {
    id: 'dead-letters-that-keep-the-blocks-of-their-keys',
    file: 'src/core/own-bytes.ts',
    find: 'const bytes = Buffer.allocUnsafeSlow(',
    replace: 'const bytes = Buffer.allocUnsafe(',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'keys are passed on byte for byte, and the key of a dead letter keeps nothing else in memory',
    },
  },
  {
    id: 'waiting-records-that-leave-blocks-half-empty',
    file: 'src/adapters/kafka/wire/record-bundle.ts',
    find: 'blockBytes / 8',
    replace: 'blockBytes',
    test: {
      file: 'adapters/kafka/wire/record-encoder.test.ts',
      name: 'records that wait for acknowledgement hold at most a seventh more memory than their bytes, and one block',
    },
  },
  {
    id: 'records-sorted-for-fewer-partitions-than-there-are',
    file: 'src/adapters/kafka/producer/publish.ts',
    find: 'fixed ?? partitionOf(record, partitions)',
    replace: 'fixed ?? partitionOf(record, Math.max(1, partitions - 1))',
    test: {
      file: 'adapters/kafka/producer/publish.test.ts',
      name: 'property: records go to the partitions that kafkajs and the Java client choose, in order',
    },
  },
  {
    id: 'a-retry-on-the-wire-that-keeps-its-fetch',
    file: 'src/forwarder/plan/retry-planner.ts',
    find: 'isDeferred || work.isOfRun || isParked ? retry : onItsOwn(retry)',
    replace: 'retry',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a retry that waits for its answer keeps nothing of its fetch in memory',
    },
  },
  {
    id: 'a-key-without-a-bound',
    file: 'src/forwarder/send/lanes.ts',
    find: "    if (isFull && !delivery.isOrdered) return 'full'",
    replace: '',
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'a key may queue ten seconds of work at a slow endpoint; the rest is deferred, and the queue keeps its order',
    },
  },
  {
    id: 'returns-to-a-working-endpoint-wait-longer-and-longer',
    file: 'src/core/delivery/disposition.ts',
    find: 'const stepMs = hasPlaceThen ? 0 : ',
    replace: 'const stepMs = ',
    test: {
      file: 'core/pacing/return-times.test.ts',
      name: 'a backlog for a slow, working endpoint is answered within five times the time that it needs',
    },
  },
  {
    id: 'all-deferred-at-once-return-at-once',
    file: 'src/core/pacing/endpoint-pace.ts',
    find: 'this.#levels[index]! < delayMs * perMs',
    replace: 'this.#levels[index]! >= 0',
    test: {
      file: 'core/pacing/return-times.test.ts',
      name: 'a delay is given to as many deliveries as the endpoint can answer within it, and the rest get the next longer one',
    },
  },
  {
    id: 'lanes-that-stay-as-long-as-they-have-become',
    file: 'src/forwarder/send/dispatcher.ts',
    find: '    if (destination.lanes.hasTooLong) this.#crowded.add(destination)',
    replace: '',
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'a key may queue ten seconds of work at a slow endpoint; the rest is deferred, and the queue keeps its order',
    },
  },
  {
    id: 'unseen-work-taken-for-none',
    file: 'src/forwarder/send/head-of-line-monitor.ts',
    find: 'hidden ||= partition.paused',
    replace: 'hidden = false',
    test: {
      file: 'forwarder/send/head-of-line-monitor.test.ts',
      name: 'records behind a full buffer count as an idle destination’s, so the blocking endpoint sheds after 2 s',
    },
  },
  {
    id: 'calls-that-wait-for-a-destination-that-is-not-set-up',
    file: 'src/forwarder/send/endpoint-admission.ts',
    find: 'const pause = this.pause(this.#attempts.length, now)',
    replace: 'const pause = this.#pace.deferral(this.#attempts.length, now)',
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'an endpoint that is not set up defers new and waiting deliveries, and resumes once it is set up',
    },
  },
  {
    id: 'every-forwarder-takes-the-whole-limit',
    file: 'src/core/pacing/destination-limit.ts',
    find: 'Math.floor((maxInFlight * owned) / all)',
    replace: 'Math.floor((maxInFlight * all) / all)',
    test: {
      file: 'pipeline/settings/destination-limits.test.ts',
      name: 'no more requests are in flight than the limit of all forwarders, and another destination is not affected',
    },
  },
  {
    id: 'a-bucket-that-never-empties',
    file: 'src/core/pacing/destination-limit.ts',
    find: 'this.#tokens = this.#tokensAt(now) - 1',
    replace: 'this.#tokens = this.#tokensAt(now)',
    test: {
      file: 'core/pacing/destination-limit.test.ts',
      name: 'property: in no time do more attempts start than the rate allows, and as many when they may',
    },
  },
  {
    id: 'a-limit-that-nothing-asks',
    file: 'src/forwarder/send/endpoint-queue.ts',
    find: 'if (limit !== null && !limit.allows(this, now)) return',
    replace: 'if (limit !== null && !limit.allows(this, now)) void limit',
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'endpoints of a destination with a limit take turns, and one that ends lets the next one start',
    },
  },
  {
    id: 'a-limit-that-does-not-say-so',
    file: 'src/forwarder/send/endpoint-queue.ts',
    find: "deferral.reason === 'slow' && this.isLimited(now) ? 'limited' : deferral.reason",
    replace: 'deferral.reason',
    test: {
      file: 'pipeline/settings/destination-limits.test.ts',
      name: 'a destination at its limit that holds others back is deferred, which its metric and its dead letters say',
    },
  },
  {
    id: 'evaluations-without-a-bound',
    file: 'src/core/expression/evaluation.ts',
    find: 'if ((this.#stepsLeft -= steps) < 0) throw outOfSteps',
    replace: 'this.#stepsLeft -= steps',
    test: {
      file: 'core/expression/evaluation.test.ts',
      name: 'running out of steps is no fault that another part of the condition can cover',
    },
  },
  {
    id: 'deep-values-compared-to-their-end',
    file: 'src/core/expression/operators.ts',
    find: 'if (depth === maxComparedDepth) return tooDeep',
    replace: 'if (depth === Infinity) return tooDeep',
    test: {
      file: 'core/expression/evaluation.test.ts',
      name: 'values are compared down to ten lists and maps within each other',
    },
  },
  {
    id: 'a-destination-held-by-a-pause-of-the-process',
    file: 'src/forwarder/plan/condition-watch.ts',
    find: 'const cpuMs = leastCpuMs(evaluate)',
    replace: 'const cpuMs = steadyClock.now() - begin + leastCpuMs(evaluate)',
    test: {
      file: 'forwarder/plan/condition-watch.test.ts',
      name: 'a process that was preempted, or collected garbage, during an evaluation reports nothing',
    },
  },
  {
    id: 'a-condition-that-takes-too-long-evaluated-again-and-again',
    file: 'src/forwarder/plan/routing.ts',
    find: 'if (runtime.filter) runtime.filter = { ...runtime.filter, where: null }',
    replace: 'if (runtime.filter) runtime.filter = { ...runtime.filter }',
    test: {
      file: 'pipeline/security/conditions.test.ts',
      name: 'a condition that takes too long all the same holds its own destination alone, until it is changed',
    },
  },
  {
    id: 'a-full-endpoint-taken-for-one-that-is-away',
    file: 'src/core/pacing/endpoint-pace.ts',
    find: 'if (this.#isRefusing && round',
    replace: 'if (!this.#isRefusing && round',
    test: {
      file: 'forwarder/shared-endpoints.test.ts',
      name: 'one alone at an endpoint that answers 503 to what is too much sends it few requests in vain',
    },
  },
]
