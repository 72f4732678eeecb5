import type { Mutation } from './mutation.ts'

const down = 'An endpoint that is down is left alone, probed, and soon back at its full rate'
const order = "One user's first attempts at one destination are in order"
const heldBack = "One that holds back others sheds its own work, and one that hangs is in nobody's way"
const bounded =
  'A key holds no more than its bound at a destination, the rest of its calls is put off, and its order is kept'
const worksOff =
  'What an endpoint that works is too slow for comes back when it can take it, until all is answered'
const unseen =
  "Busy users with more calls than are read ahead hold up nobody else's; what cannot be seen counts as another's"
const apart = 'A destination that cannot be set up holds its own calls only, and gets them once it can be'
const inTurns = 'Where thousands are deferred at once, others are answered in between'
const resting = 'What waits in a tier is fetched only shortly before it is due'

const busy = 'A busy process has under way what keeps it busy, and holds nobody back while it has time'

/** Endpoints apart from one another, and users in order. */
export const isolation: readonly Mutation[] = [
  {
    name: 'no limit of requests in flight for an endpoint',
    promise: 'An endpoint that hangs uses up its own requests in flight only',
    file: 'src/core/endpoint-pace.ts',
    find: 'return inFlight < this.#limit.value && this.#onWire < this.#window',
    replace: 'return inFlight >= 0 && this.#onWire < this.#window',
    test: {
      file: 'forwarder/dispatcher.test.ts',
      name: 'an endpoint that hangs uses up its own requests in flight only',
    },
  },
  {
    name: 'no shares of the slots',
    promise: 'Nobody can take all requests in flight, or all memory',
    file: 'src/forwarder/slots.ts',
    find: 'if (user.inFlight >= free) {',
    replace: 'if (user.inFlight > this.#max) {',
    test: { file: 'forwarder/slots.test.ts', name: 'one alone gets half of the slots' },
  },
  {
    name: 'as many requests at once as there are slots',
    promise: busy,
    file: 'src/core/busy-window.ts',
    find: 'return Math.floor(this.#size)',
    replace: 'return this.#most',
    test: {
      file: 'forwarder/dispatcher.test.ts',
      name: 'while answers keep the process busy few requests are on the wire, by turns, and there is plenty',
    },
  },
  {
    name: 'requests held back though the process has time',
    promise: busy,
    file: 'src/forwarder/slots.ts',
    find: 'if (this.#hungry.length > 0 && this.#window.turned(this.#taken)) this.feed(steadyClock.now())',
    replace: '',
    test: {
      file: 'forwarder/dispatcher.test.ts',
      name: 'what waits for endpoints that hang holds back nobody: who has time sends more',
    },
  },
  {
    name: 'records taken although there is plenty to do',
    promise: busy,
    file: 'src/forwarder/taker.ts',
    find: 'if (!this.#hasPlenty()) this.#takeTurn()',
    replace: 'this.#takeTurn()',
    test: {
      file: 'forwarder/taker.test.ts',
      name: 'while there is plenty to do nothing is taken, and as soon as there is not it goes on',
    },
  },
  {
    name: 'room that a lost retry keeps',
    promise: 'What is held in memory is bounded, in bytes too, and never stalls',
    file: 'src/forwarder/retry-records.ts',
    find: '    this.#parts.room.free(bytes)\n',
    replace: '    void bytes\n',
    test: {
      file: 'forwarder/retry-records.test.ts',
      name: 'one whose partition is lost before its turn gives its room back, and finishes nothing',
    },
  },
  {
    name: 'no bound on what is under way',
    promise: 'What is held in memory is bounded, in bytes too, and never stalls',
    file: 'src/forwarder/room.ts',
    find: 'return this.#count >= this.#maxCount || this.#bytes >= this.#maxBytes',
    replace: 'return this.#count >= this.#maxCount',
    test: { file: 'forwarder/room.test.ts', name: 'it is full by count or by bytes, whichever comes first' },
  },
  {
    name: 'a tier that is read long before anything is due',
    promise: resting,
    file: 'src/forwarder/consumption.ts',
    find: 'if (ms > restMs) this.#pause(partition)',
    replace: 'if (ms > restMs) return',
    test: {
      file: 'forwarder/consumption.test.ts',
      name: 'a partition whose head is due in a while is paused until shortly before, whatever ends meanwhile',
    },
  },
  {
    name: 'a queue that is deferred in one go',
    promise: inTurns,
    file: 'src/forwarder/deferrals.ts',
    find: 'const most = this.#left',
    replace: 'const most = Infinity',
    test: {
      file: 'forwarder/dispatcher.test.ts',
      name: 'where much is deferred at once, what others wait for comes in between: a breaker that opens, shedding, lanes',
    },
  },
  {
    name: 'retries that come due together and take a whole turn',
    promise: inTurns,
    file: 'src/forwarder/retries-intake.ts',
    find: "if (isDeferred && !dispatcher.deferrals.takeOne()) return { kind: 'turn' }",
    replace: '',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'retries that come due together at an endpoint that takes nothing leave each turn to others',
    },
  },
  {
    name: 'hops on to the next tier without a bound',
    promise: inTurns,
    file: 'src/forwarder/retries-intake.ts',
    find: "        if (!dispatcher.deferrals.takeOne()) return { kind: 'turn' }\n",
    replace: '',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'retries that come due together before their Retry-After hop on a few at a time',
    },
  },
  {
    name: 'a partition that is read without end',
    promise: 'What is held in memory is bounded, in bytes too, and never stalls',
    file: 'src/forwarder/consumption.ts',
    find: 'if (this.#isFull(partition)) this.#pause(partition)',
    replace: '',
    test: { file: 'forwarder/consumption.test.ts', name: 'a full partition is paused' },
  },
  {
    name: 'a slow endpoint shed although it is alone',
    promise: 'A slow endpoint that works is lag and nothing else',
    file: 'src/forwarder/hold-back.ts',
    find: "if (held === 'nobody') {",
    replace: 'if (!endpoint.isOverdue(now)) {',
    test: {
      file: 'forwarder/hold-back.test.ts',
      name: 'an endpoint that is slow and alone is only lag: nothing is deferred however long it takes',
    },
  },
  {
    name: 'nothing shed by who holds others back',
    promise: heldBack,
    file: 'src/forwarder/hold-back.ts',
    find: 'endpoint.shedding = true',
    replace: 'endpoint.shedding = false',
    test: {
      file: 'forwarder/hold-back.test.ts',
      name: 'an endpoint that holds back work of an idle one sheds after 2 s, not before, and the other is served',
    },
  },
  {
    name: 'a breaker that never opens',
    promise: down,
    file: 'src/core/breaker.ts',
    find: "{ when: 'too_many', to: 'open', by: 'wait' },",
    replace: '',
    test: { file: 'core/endpoint-pace.test.ts', name: 'for hours gets a bounded number of requests' },
  },
  {
    name: 'a breaker without a ramp',
    promise: down,
    file: 'src/core/breaker.ts',
    find: "success: [{ to: 'ramp', by: 'widen' }],",
    replace: "success: [{ to: 'closed', by: 'forget' }],",
    test: {
      file: 'forwarder/dispatcher.test.ts',
      name: 'half open, one probe is on the wire and the others are deferred',
    },
  },
  {
    name: 'a breaker whose waits do not grow',
    promise: down,
    file: 'src/core/breaker.ts',
    find: 'const coolDownMs = Math.min(breaker.coolDownMs * 2, limits.maxCoolDownMs)',
    replace: 'const coolDownMs = limits.coolDownMs',
    test: { file: 'core/endpoint-pace.test.ts', name: 'for hours gets a bounded number of requests' },
  },
  {
    name: 'a call put off for what is left of the cool-down',
    promise: 'What a breaker puts off waits for the whole of its cool-down',
    file: 'src/core/endpoint-pace.ts',
    find: 'waitMs: Math.max(waitMs, coolDownMs)',
    replace: 'waitMs',
    test: {
      file: 'core/endpoint-pace.test.ts',
      name: 'what a breaker puts off waits for the whole of its cool-down, however little of it is left',
    },
  },
  {
    name: 'a timer for each retry that comes due',
    promise: 'What comes due in a tier one by one is taken several at a time, never early',
    file: 'src/forwarder/taker.ts',
    find: 'const leastRestMs = 100',
    replace: 'const leastRestMs = 1',
    test: {
      file: 'forwarder/taker.test.ts',
      name: 'what comes due one by one is taken several at a time',
    },
  },
  {
    name: 'no retry budget',
    promise: 'Retries that fail are no more than the budget allows; those that succeed are not limited',
    file: 'src/forwarder/endpoint-queue.ts',
    find: 'if (attempt.run.wasAttempted && !this.#pace.mayRetry(now)) {',
    replace: 'if (attempt.run.wasAttempted && now < 0) {',
    test: {
      file: 'forwarder/dispatcher.test.ts',
      name: 'retries that fail use up the budget; first attempts, also late ones, and what is well do not',
    },
  },
  {
    name: 'a budget that forgets what was spent',
    promise: 'Retries that fail are no more than the budget allows; those that succeed are not limited',
    file: 'src/core/retry-budget.ts',
    find: 'this.#allFailed++',
    replace: '',
    test: {
      file: 'core/endpoint-pace.test.ts',
      name: 'retries that fail stay within the budget, however many there are',
    },
  },
  {
    name: 'a pause that was asked for not kept',
    promise: 'An endpoint that asks for a pause by `Retry-After` gets one, whatever the rate of its calls',
    file: 'src/core/breaker.ts',
    find: "busy: [{ to: 'paused', by: 'wait' }],",
    replace: 'busy: [],',
    test: {
      file: 'forwarder/dispatcher.test.ts',
      name: 'a 429 with Retry-After stops the endpoint, not just the delivery: what would wait long is deferred for so long',
    },
  },
  {
    name: 'time-outs do not lower the limit',
    promise: 'Each endpoint gets as many requests at once as bring more through, within bounds',
    file: 'src/core/concurrency-limit.ts',
    find: "this.#apply('overload', 0)",
    replace: '',
    test: {
      file: 'core/concurrency-limit.test.ts',
      name: 'time-outs halve it once for all that was under way, below the start, and success doubles it back',
    },
  },
  {
    name: 'no order of a key',
    promise: order,
    file: 'src/forwarder/lanes.ts',
    find: `    first.last!.next = run
    first.last = run
    first.waiting++
    return 'waits'`,
    replace: "    return 'turn'",
    test: {
      file: 'forwarder/dispatcher.test.ts',
      name: 'first attempts of one key at one destination run one after another, different keys side by side',
    },
  },
  {
    name: 'the heap let grow',
    promise: 'What is held in memory is bounded, in bytes too, and never stalls',
    file: 'src/adapters/bound-heap.ts',
    find: "collections.observe({ entryTypes: ['gc'] })",
    replace: '',
    test: {
      file: 'adapters/bound-heap.test.ts',
      name: "the space of a forwarder's young objects grows to 32 MB and no further, that of a sync not at all",
    },
  },
  {
    name: 'dead letters that keep the blocks of their keys',
    promise: 'What passed through is freed with the young objects, not with the whole heap',
    file: 'src/core/own-bytes.ts',
    find: 'const bytes = Buffer.allocUnsafeSlow(',
    replace: 'const bytes = Buffer.allocUnsafe(',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'keys go on as the bytes that they came in, and that of a dead letter keeps nothing else in memory',
    },
  },
  {
    name: 'waiting records that leave blocks half empty',
    promise: 'What passed through is freed with the young objects, not with the whole heap',
    file: 'src/adapters/kafka/record-encoder.ts',
    find: 'blockBytes / 8',
    replace: 'blockBytes',
    test: {
      file: 'adapters/kafka/record-encoder.test.ts',
      name: 'records that wait for their acknowledgement keep nothing in memory but each other, a seventh and a block',
    },
  },
  {
    name: 'records sorted for fewer partitions than there are',
    promise: 'What is written faster than by kafkajs and avsc has their bytes',
    file: 'src/adapters/kafka/write/publish.ts',
    find: 'fixed ?? partitionOf(record, partitions)',
    replace: 'fixed ?? partitionOf(record, Math.max(1, partitions - 1))',
    test: {
      file: 'adapters/kafka/write/publish.test.ts',
      name: 'property: records go to the partitions that kafkajs, and so Java, would choose, in their order',
    },
  },
  {
    name: 'a retry on the wire that keeps its fetch',
    promise: 'What passed through is freed with the young objects, not with the whole heap',
    file: 'src/forwarder/retries-intake.ts',
    find: 'isDeferred ? retry : onItsOwn(retry)',
    replace: 'retry',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a retry that waits for its answer keeps nothing of the fetch that it came in',
    },
  },
  {
    name: 'a key without a bound',
    promise: bounded,
    file: 'src/forwarder/lanes.ts',
    find: "    if (first.waiting >= this.#bound.maxWaiting && hasWaitedLong(first, run.admittedAt)) return 'full'",
    replace: '',
    test: {
      file: 'forwarder/dispatcher.test.ts',
      name: 'of one key no more waits at a slow endpoint than ten seconds of work: the rest is deferred, what is left keeps its order',
    },
  },
  {
    name: 'what comes back to an endpoint that works waits longer and longer',
    promise: worksOff,
    file: 'src/core/disposition.ts',
    find: 'const stepMs = hasPlaceThen ? 0 : ',
    replace: 'const stepMs = ',
    test: {
      file: 'core/return-times.test.ts',
      name: 'a backlog for an endpoint that is slow and works is answered within five times the time that it takes',
    },
  },
  {
    name: 'all that is put off at once comes back at once',
    promise: worksOff,
    file: 'src/core/return-times.ts',
    find: 'this.#levels[index]! < delayMs * perMs',
    replace: 'this.#levels[index]! >= 0',
    test: {
      file: 'core/return-times.test.ts',
      name: 'a delay gets as much at once as the endpoint can answer within it, and the next longer one what is beyond',
    },
  },
  {
    name: 'lanes that stay as long as they have become',
    promise: bounded,
    file: 'src/forwarder/rounds.ts',
    find: '    if (lanes.hasTooLong) this.#crowded.add(run.destination)',
    replace: '',
    test: {
      file: 'forwarder/dispatcher.test.ts',
      name: 'of one key no more waits at a slow endpoint than ten seconds of work: the rest is deferred, what is left keeps its order',
    },
  },
  {
    name: "what cannot be seen taken for nobody's",
    promise: unseen,
    file: 'src/forwarder/hold-back.ts',
    find: 'hidden ||= partition.paused',
    replace: 'hidden = false',
    test: {
      file: 'forwarder/hold-back.test.ts',
      name: 'what lies behind the buffer cannot be seen and is taken for an idle destination’s: after 2 s its endpoint sheds',
    },
  },
  {
    name: 'calls that wait for a destination that is not set up',
    promise: apart,
    file: 'src/forwarder/endpoint-queue.ts',
    find: `    if (this.#target === null) return notSetUp
`,
    replace: `
`,
    test: {
      file: 'forwarder/dispatcher.test.ts',
      name: 'an endpoint that is not set up defers all that comes and all that waits, and goes on once it is',
    },
  },
]
