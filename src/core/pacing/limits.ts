/**
 * Every bound of the forwarder's flow control. Each queue has one. When it is reached, work waits one step earlier, and
 * in the end in Kafka.
 *
 * | gate | counts | bound | who waits | who wakes it |
 * |---|---|---|---|---|
 * | partition's buffer | records and bytes fetched but not planned | `bufferedRecords`, `bufferedBytes` | the partition: paused at Kafka | its own drain below half of the bound |
 * | partition's span | offsets from the first unfinished to the last fetched | `maxSpan` less one `fetchMargin` | the partition: paused | a finished record or a commit, one margin lower |
 * | due time | time until the head of a retry partition is due | more than `restMs` | the partition: paused | a timer, after `minRestMs` at the soonest |
 * | memory budget | deliveries in flight or being published, and their bytes | `deliveriesPerSlot` × `MAX_IN_FLIGHT` (at least `minDeliveries`), `maxBytesInFlight` | partitions: head blocked | a settled delivery, below `wakeBelow` |
 * | endpoint's share | deliveries at one endpoint; calls and retries apart | `shareOfFree` of the budget, at least `placesPerSlot` × its limit; a queue whose first attempt has waited for `queueWaitMs` | partitions whose head needs the endpoint | a settled delivery, below `wakeBelow`; breaker, shedding |
 * | work at hand | requests that wait for a slot only | `plentyWaiting` | the planner skips turns | the event loop, below `fewWaiting` |
 * | planner's turn | records planned per turn of the event loop | `recordsPerTurn` | the planner | the next turn |
 * | slots | requests in flight in the process | `MAX_IN_FLIGHT`; an endpoint holds fewer than are free | endpoints, in FIFO order | a response |
 * | busy window | the same, while the CPU is busy | `minBusyWindow`, growing by `busyWindowGrowth` | endpoints | an idle turn of the event loop |
 * | concurrency limit | requests in flight at one endpoint | this process’s part of `startInFlightPerEndpoint`, 1 to `MAX_IN_FLIGHT_PER_ENDPOINT`; below 1, in turns of a second | the endpoint's queue | a response |
 * | destination limit | attempts a second and in flight at all URLs of a destination | a share of `--max-rate` (`limitBurstMs` of the rate at once) and of `--max-in-flight` | the endpoint's queue | a timer; a response |
 * | order per key | first attempts of one key at one destination | 1 in flight; `maxLaneWorkMs` of work waits, after `laneGraceMs` | the key; the excess is deferred | the previous call's outcome |
 * | batch | calls in one request | `--batch`, `--batch-bytes`; first attempts of a key that is on the wire stay, `batchesScanned` batches are looked through | the endpoint's queue | a full batch; a timer after `--batch-wait`; a response |
 * | parked calls | calls that wait for an earlier one of their user, at strict destinations | `maxParked` and `maxParkedSpan` a partition, `maxParkedBytes`; `--order-limit` a user | the partition of `webhooks.retry.strict` | the oldest are let go |
 * | runs | calls that one record of a tier stands for | `maxRunCalls`, collected for `lingerMs` | offsets, within the memory budget | Kafka's acknowledgement |
 * | attempts of their own | requests at an endpoint whose breaker is open | 1 to `mostOwnAttempts`, by how soon it answers | the rest of their run: for at most 1 s behind its due time, then put off | a response |
 * | deferrals | deliveries deferred per turn | `deferredAtOnce` | the next deferral | the next turn |
 * | openings | connections opened per turn, and opening at once at an origin | `openedAtOnce`, origins in turns; `openingPerOrigin`, the rest after `openingWait` | the request, within its time limit | the next turn; one that is open; one that comes free |
 * | blocking others | how long an endpoint's calls may block others' | `headOfLineLimitMs` | none: the endpoint sheds load | its queue below half for `queueWaitMs` |
 * | retry budget | failed retries at one endpoint | `RETRY_BUDGET` % of first attempts in `budgetWindowMs`, or this process’s part of `defaultTrickle` | none: deferred | |
 * | publishing | one batch per topic in flight | `maxBatchRecords`, `maxBatchBytes`, every `lingerMs` | records, within the memory budget | Kafka's acknowledgement |
 * | commits | one commit per group in flight | every `commitIntervalMs`; up to `maxTicksPassed` times as long while commits fail | offsets | a timer |
 *
 * What only tunes an estimate or an algorithm stands beside that algorithm: the breaker's thresholds in breaker.ts, the
 * windows of measuring in concurrency-limit.ts.
 */

// consume

/**
 * What all partitions share, and what each may have in any case. Above its share a partition is paused, below half of it
 * resumed: kafkajs takes a moment to fetch again, and what is left bridges it.
 */
export const bufferedRecords = { all: 24_000, one: 2_000 }
export const bufferedBytes = { all: 16 * 1024 * 1024, one: 1024 * 1024 }
/** What one fetch may still bring of a partition that is about to be paused. */
export const fetchMargin = 4_000
/** Offsets that one partition's tracker may span: what the committed map can nearly always hold. */
export const maxSpan = 100_000
/**
 * A partition whose head is due later than that, in ms, is paused until then: the records behind it are due later still,
 * and would only fill the memory. It leaves time to check the head again, and to fetch.
 */
export const restMs = 3_000
/**
 * The minimum rest of a partition whose head is not due, in ms. All that came due meanwhile is then taken in one
 * go: waking for each single one costs an otherwise idle process half as much CPU again.
 */
export const minRestMs = 100

// plan

/** Records planned in one turn of the event loop: answers and heartbeats come in between. */
export const recordsPerTurn = 128
/** Deliveries in flight or being published, for each request that may be in flight; `minDeliveries` in any case. */
export const deliveriesPerSlot = 10
export const minDeliveries = 1_000
/** Bodies of deliveries in flight, including those that are being published. */
export const maxBytesInFlight = 64 * 1024 * 1024
/** The part of the free budget that an endpoint may hold: one alone gets a third of all, ten get a twelfth each. */
export const shareOfFree = 0.5
/** Those that wait for room are woken once no more than this part of it is taken: one by one would cost more. */
export const wakeBelow = 0.75

// send

/** Places of an endpoint for each request that it may have in flight, for calls and for retries each. */
export const placesPerSlot = 2
/**
 * Once the first attempt in an endpoint's queue has waited for so long, in ms, nothing is added; so long is also waited
 * during a pause that the endpoint asked for. What was added before waits for longer where the endpoint has become slower.
 */
export const queueWaitMs = 2_000
/** Number of requests waiting only for a slot at which no more records are taken. */
export const plentyWaiting = 256
/** Below this number records are taken again. */
export const fewWaiting = 128
/** This many requests in flight keep a core busy when answers come at once. */
export const minBusyWindow = 32
/** By what share of itself the busy window grows: that is undone again within four round trips. */
export const busyWindowGrowth = 0.25
/** Of the whole consumer group. With a receiver that answers at once more do not bring more through, and need more memory. */
export const startInFlightPerEndpoint = 64
/**
 * What of a destination's rate may go out at once after a rest, in ms, but at least one attempt: timers are no more exact.
 */
export const limitBurstMs = 100
/** How many batches' worth of an endpoint's queue is looked through for calls that may go out. */
export const batchesScanned = 4
/**
 * The work of one key that may wait at one destination, in ms. A call beyond it would wait for its turn for as long as the
 * first retry tier takes by default, in memory and with its offset uncommitted.
 */
export const maxLaneWorkMs = 10_000
/** Before the first one in a lane has waited for so long, in ms, nothing is taken for too much: few answers say little. */
export const laneGraceMs = 2_000
/**
 * To defer one costs more than to send it, and deferring many at once delays all responses: thousands may
 * be queued when a breaker opens, and come due together in a tier ten seconds later.
 */
export const deferredAtOnce = 16
/**
 * With TLS one takes 1.5 ms in all, in which nothing else is done. Where a receiver restarted, with 16 its neighbour got a
 * third of what it gets, and with 6 the restart took 5 s.
 */
export const openedAtOnce = 10
/**
 * What waits for a receiver that restarted is soon through over few connections, and each more costs as much as forty
 * deliveries.
 */
export const openingPerOrigin = 40
/** Where responses take long, none comes free: the rest is opened after that, or after this part of a request's time limit. */
export const openingWait = { ms: 500, ofTimeLimit: 0.1 }
/**
 * How long an endpoint's work may wait ahead of other endpoints' before it is deferred, in ms: in the endpoint's
 * queue, where others overtake it, or in its partition, where they cannot.
 */
export const headOfLineLimitMs = 2_000
/** First attempts and failed retries are remembered for so long. */
export const budgetWindowMs = 10 * 60_000
/** As Finagle has it: ten a second, over ten seconds; for the whole consumer group. */
export const defaultTrickle = { perSecond: 10, burst: 100 }

// settle

/** A batch stays below the broker's limit on a partition's batch whichever partition its records fall to. */
export const maxBatchBytes = 512 * 1024
export const maxBatchRecords = 500
/**
 * A batch follows another of its topic no sooner, in ms. Each batch is a request, which costs as much as some fifty records
 * in it, and only a record's own offset waits for it. Beside a bad endpoint with a tenth of
 * a full load, 250 ms took 7 % off what the process does for all the others; with 600 ms it was more again, since
 * what waits for so long outlives the young objects.
 */
export const lingerMs = 250

/** Parked calls that one partition may hold in memory, and the offsets from the first to the last: all that a commit can name. */
export const maxParked = 10_000
export const maxParkedSpan = 20_000
/** Their bodies, of all partitions of a process. */
export const maxParkedBytes = 32 * 1024 * 1024

// commit

/** With the tally that goes first, a commit is acknowledged within 100 ms of what it holds. */
export const commitIntervalMs = 80
/** While commits fail, at most this many times as long. */
export const maxTicksPassed = 32
