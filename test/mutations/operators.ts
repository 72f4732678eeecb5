import type { Mutation } from '../../scripts/mutations/mutation.ts'

const events = 'pipeline/operational/events.test.ts'

/** What operators see: live tails and operational events. */
export const operators: readonly Mutation[] = [
  {
    id: 'the-older-of-two-copies-taken-for-the-newest',
    file: 'src/operators/why/describe.ts',
    find: '    .at(-1)\n  const gone',
    replace: '    .at(0)\n  const gone',
    test: {
      file: 'console/messages-api.test.ts',
      name: 'what a call says is shown as it was sent, to operators; not to readers, and not once it is erased',
    },
  },
  {
    id: 'a-wait-without-its-url',
    file: 'src/core/statistics/waiting-reason.ts',
    find: 'if (asItIs) return { ...asItIs, nextAt: later(dueAt, asItIs.nextAt) }',
    replace: '',
    test: {
      file: 'core/statistics/waiting-reason.test.ts',
      name: 'a delivery that waits says why: what its URL answers since when, and when it is tried next',
    },
  },
  {
    id: 'done-before-it-was-counted',
    file: 'src/operators/dead-letters/dead-letters.ts',
    find: 'failedAt < asOf - countedWithinMs &&',
    replace: '',
    test: {
      file: 'console/dead-letters-sent-again.test.ts',
      name: 'what is no dead letter any more is done, as far as the statistics know',
    },
  },
  {
    id: 'anything-answered-without-kafka',
    file: 'src/console/request.ts',
    find: 'await (needsNoKafka ? caughtUp.catch(() => {}) : caughtUp)',
    replace: 'await caughtUp.catch(() => {})',
    test: {
      file: 'adapters/http/console-access.test.ts',
      name: 'without Kafka it is said whose session it is, by what was known last, and nothing else is answered',
    },
  },
  {
    id: 'successes-among-the-failures',
    file: 'src/operators/statistics/database.ts',
    find: "wanted === anyFailure ? outcome !== 'success' : outcome === wanted",
    replace: 'wanted === anyFailure || outcome === wanted',
    test: {
      file: 'adapters/store/statistics/statistics-database.test.ts',
      name: 'pages of attempts follow one another without a gap, by every filter, and the oldest go first',
    },
  },
  {
    id: 'waiting-is-what-is-left-over',
    file: 'src/core/statistics/pipeline.ts',
    find: 'const net = retried + deferred - cameDue',
    replace:
      'const net = Math.min(waiting, retried + deferred - cameDue)\n  waiting = planned + replayed - delivered - counts.deadLettered - counts.held - skipped - counts.erased',
    test: {
      file: 'core/statistics/pipeline.test.ts',
      name: 'what waits is what lies in the tiers, and what should lie there and does not is unaccounted',
    },
  },
  {
    id: 'all-well-without-a-collector',
    file: 'src/operators/problems/problems.ts',
    find: 'if (!collector.isLive)',
    replace: 'if (!collector.isLive && collector.seenAt === null)',
    test: {
      file: 'console/problems.test.ts',
      name: 'each problem is raised where it is there, and “All well” is said only without any',
    },
  },
  {
    id: 'what-was-seen-once-is-silent-for-ever',
    file: 'src/core/problems/acknowledgement.ts',
    find: ': changedAt <= seen.at',
    replace: ': true',
    test: {
      file: 'console/problems.test.ts',
      name: 'a problem that somebody has seen needs nobody, until it changes or grows',
    },
  },
  {
    id: 'the-overview-is-as-long-as-there-are-destinations',
    file: 'src/operators/statistics/overview.ts',
    find: "inOrder(all, 'worst').slice(0, maxOverviewRows)",
    replace: "inOrder(all, 'worst')",
    test: {
      file: 'console/many-destinations.test.ts',
      name: 'with 100,000 destinations in trouble, overview and problems take 50 KB at most, and say how many are left out',
    },
  },
  {
    id: 'each-destination-is-a-cause',
    file: 'src/operators/problems/problems.ts',
    find: "[word, why === 'no_token' ? why : '', host]",
    replace: '[word, id, host]',
    test: {
      file: 'console/problems.test.ts',
      name: 'problems of one cause are one row, with the most destinations first, and what nobody has seen before the rest',
    },
  },
  {
    id: 'pages-of-destinations-overlap',
    file: 'src/operators/statistics/overview-operations.ts',
    find: 'standings.slice(skip, end)',
    replace: 'standings.slice(Math.max(0, skip - 1), end)',
    test: {
      file: 'console/many-destinations.test.ts',
      name: 'destinations are filtered and sorted by the server, and pages have each of them once',
    },
  },
  {
    id: 'delivering-without-a-forwarder',
    file: 'src/core/statistics/health.ts',
    find: "if (reading === 'no_forwarder') return",
    replace: "if (reading === 'no_forwarder' && sent.every(isDown)) return",
    test: {
      file: 'core/statistics/health.test.ts',
      name: 'a destination is delivering only where something arrives, a forwarder reads all, and no URL is down',
    },
  },
  {
    id: 'missed-because-the-ledger-is-not-read',
    file: 'src/operators/statistics/processes.ts',
    find: 'Math.min(now, store.reach().asOf ?? now)',
    replace: 'Math.max(now, store.reach().asOf ?? now)',
    test: {
      file: 'console/problems.test.ts',
      name: 'a process that is not heard while the ledger cannot be read is not missed',
    },
  },
  {
    id: 'delivering-while-all-become-dead-letters',
    file: 'src/core/statistics/health.ts',
    find: 'share(delivered, delivered + deadLettered)',
    replace: 'share(delivered, delivered)',
    test: {
      file: 'core/statistics/health.test.ts',
      name: 'each word is said where its facts hold',
    },
  },
  {
    id: 'events-are-sent-before-they-are-safe',
    file: 'src/operators/operational-events/events.ts',
    find: `    await lease.commit({ positions: reading.positions(), state: stateOf(fold, mails) })
    await ports.send(`,
    replace: '    await ports.send(',
    test: {
      file: 'console/operational/emit-events.test.ts',
      name: 'nothing is sent before what is to be sent is committed',
    },
  },
  {
    id: 'heartbeats-with-what-a-receiver-answered',
    file: 'src/forwarder/forwarder-status.ts',
    find: 'status, detail, body: null }',
    replace: 'status, detail, body: outcome.body }',
    test: {
      file: 'pipeline/privacy/receivers-answers.test.ts',
      name: 'what a receiver repeats of a call gets into no heartbeat, no ledger record and no operational event',
    },
  },
  {
    id: 'events-with-what-a-receiver-answered',
    file: 'src/core/operational/failures.ts',
    find: 'detail: `status ${last.status}`',
    replace: 'detail: Buffer.from(last.body).toString()',
    test: {
      file: 'pipeline/privacy/receivers-answers.test.ts',
      name: 'what a receiver repeats of a call gets into no heartbeat, no ledger record and no operational event',
    },
  },
  {
    id: 'events-of-a-console-that-died-are-forgotten',
    file: 'src/core/operational/operational-fold.ts',
    find: 'this.#unsent = [...unsent]',
    replace: 'this.#unsent = []',
    test: {
      file: 'console/operational/emit-events.test.ts',
      name: 'whenever consoles die, each event is sent',
    },
  },
  {
    id: 'a-restarted-forwarder-is-a-recovery',
    file: 'src/core/operational/operational-fold.ts',
    find: 'if (!reported || lastSuccessAt === null || lastSuccessAt < reported.since) return null',
    replace: 'if (!reported) return null',
    test: {
      file: 'core/operational/endpoint-health.test.ts',
      name: 'a forwarder that was restarted, or ended, is no proof',
    },
  },
  {
    id: 'every-dead-letter-is-an-event',
    file: 'src/core/operational/causes.ts',
    find: 'if (held !== null && now >= nextAt)',
    replace: 'if (held !== null)',
    test: {
      file: 'core/operational/operational-fold.test.ts',
      name: 'dead letters of one destination and reason make one event a minute',
    },
  },
  {
    id: 'a-cause-that-flaps-is-a-storm',
    file: 'src/core/operational/causes.ts',
    find: "return bearing !== 'counts' && now >= entry.nextAt ?",
    replace: "return bearing !== 'counts' ?",
    test: {
      file: 'core/operational/causes.test.ts',
      name: 'whatever happens, a cause is said at most once a minute',
    },
  },
  {
    id: 'names-of-events-kept-one-by-one',
    file: 'src/core/operational/causes.ts',
    find: 'entry.open = [entry.cause]',
    replace: 'entry.open = [...new Set([...entry.open, item])]',
    test: {
      file: 'core/operational/violations.test.ts',
      name: 'a new name each minute for hours is kept in bounded room',
    },
  },
  {
    id: 'an-outage-of-all-is-a-storm',
    file: 'src/core/operational/causes.ts',
    find: 'return others.length >= maxCausesAtOnce\n',
    replace: 'return others.length > 100_000\n',
    test: { file: 'core/operational/causes.test.ts', name: '500 destinations that go down at once' },
  },
  {
    id: 'mails-in-clear-text',
    file: 'src/adapters/mailer.ts',
    find: 'requireTLS: needsTls,',
    replace: 'requireTLS: false,',
    test: { file: 'adapters/mailer.test.ts', name: 'without TLS nothing is sent' },
  },
  {
    id: 'a-mail-that-nobody-got-is-silent',
    file: 'src/operators/alerts/mail-queue.ts',
    find: "this.#lose(id, isExpired ? 'expired' : 'refused')",
    replace: '',
    test: { file: 'console/operational/mail-queue.test.ts', name: 'what nobody gets is counted and logged' },
  },
  {
    id: 'a-429-is-no-4xx',
    file: 'src/core/statistics/views.ts',
    find: "  status_429: '4xx',\n",
    replace: '',
    test: { file: 'core/statistics/statistics.test.ts', name: 'every attempt is in one class of answers' },
  },
  {
    id: 'held-retries-are-not-listed',
    file: 'src/operators/destinations/calls.ts',
    find: '[...retries.map(retryView), ...data]',
    replace: 'data',
    test: { file: 'console/destination-calls.test.ts', name: 'what is held is what it would have got' },
  },
  {
    id: 'a-header-in-an-address',
    file: 'src/core/operational/mail-alerts.ts',
    find: 'if (!mailAddress.safeParse(address).success)',
    replace: "if (address === '')",
    test: { file: 'core/operational/mail-alerts.test.ts', name: 'an address is one address' },
  },
  {
    id: 'addresses-of-a-removed-alert-stay',
    file: 'src/core/operational/mail-alerts.ts',
    find: 'return { ...found, to: [], removed: true }',
    replace: 'return { ...found, removed: true }',
    test: { file: 'core/operational/mail-alerts.test.ts', name: 'of one that is removed no address is left' },
  },
  {
    id: 'every-alert-gets-every-mail',
    file: 'src/operators/alerts/mail.ts',
    find: 'events === null || (event !== null && events.includes(event))',
    replace: 'events !== undefined && event !== undefined',
    test: {
      file: 'console/operational/mail-queue.test.ts',
      name: 'each alert gets its own events at its own addresses',
    },
  },
  {
    id: 'mails-of-a-console-that-died-are-lost',
    file: 'src/operators/operational-events/events.ts',
    find: '  mails?.add(state.mails)\n',
    replace: '',
    test: {
      file: 'console/operational/emit-events.test.ts',
      name: 'what was not mailed is mailed by the console that takes over',
    },
  },
  {
    id: 'failed-events-make-events',
    file: 'src/core/operational/failures.ts',
    find: 'if (delivery?.sourceId === builtInSourceId) return null',
    replace: '',
    test: { file: events, name: 'dead letters make one event a window' },
  },
  {
    id: 'an-event-goes-to-the-destination-it-is-about',
    file: 'src/forwarder/plan/call-planner.ts',
    find: 'destinations: route.destinations.filter(({ id }) => id !== about),',
    replace: 'destinations: route.destinations,',
    test: { file: events, name: 'dead letters make one event a window' },
  },
  {
    id: 'a-tail-waits-for-a-slow-reader',
    file: 'src/core/live-tail/tail.ts',
    find: 'else if (!hasRoom) this.#dropped++',
    replace: '',
    test: { file: 'console/live-tail.test.ts', name: 'a reader that is too slow loses calls' },
  },
  {
    id: 'a-tail-shows-every-call-of-a-flood',
    file: 'src/core/live-tail/tail.ts',
    find: 'if (this.#inSecond >= maxCallsPerSecond) this.#sampled++\n    else ',
    replace: '',
    test: { file: 'console/live-tail.test.ts', name: 'shows the first hundred calls of a second' },
  },
  {
    id: 'a-tail-holds-up-the-stop',
    file: 'src/console/server.ts',
    find: '    closing.abort(stopped)\n',
    replace: '',
    test: { file: 'adapters/http/console-server.test.ts', name: 'ends at once when the server is closed' },
  },
  {
    id: 'a-tail-outlives-its-token',
    file: 'src/console/request.ts',
    find: 'if (refusedBy !== null || isStalled) refused.abort()',
    replace: 'if (isStalled) refused.abort()',
    test: { file: 'pipeline/operational/tail.test.ts', name: 'ends when its token is revoked' },
  },
  {
    id: 'a-commit-counts-without-acknowledgement',
    file: 'src/adapters/kafka/group/lease.ts',
    find: 'let acknowledged = false',
    replace: 'let acknowledged = true',
    test: { file: 'adapters/kafka/group/lease.test.ts', name: 'what its holder commits is there' },
  },
  {
    id: 'an-audit-is-news-whenever-it-fails',
    file: 'src/operators/audit/runs.ts',
    find: 'if ((failure?.identity ?? null) === before) return before',
    replace: 'if (failure === null) return null',
    test: { file: events, name: 'an audit by the API that fails is an event once' },
  },
  {
    id: 'a-cancelled-replay-is-finished',
    file: 'src/core/operational/operational-event.ts',
    find: "    case 'replay_finished':\n",
    replace: "    case 'replay_cancelled':\n    case 'replay_finished':\n",
    test: { file: events, name: 'a replay that is finished is an event' },
  },
  {
    id: 'what-a-suppressed-user-was-spared-comes-back',
    file: 'src/core/replay/replay-facts.ts',
    find: "event.disposition === 'skipped' && event.reason === 'suppressed'",
    replace: 'event.type === null',
    test: { file: 'core/replay/replay-facts.test.ts', name: 'what was skipped for a suppressed user' },
  },
  {
    id: 'a-record-that-waits-for-the-registry-is-passed-over',
    file: 'src/adapters/kafka/read/topic-reader.ts',
    find: '      if (before) throw before.error\n      await onRecord(record, signal)\n',
    replace: '      if (before) throw before.error\n',
    test: {
      file: 'adapters/kafka/read/ranges.test.ts',
      name: 'what is not there yet is waited for, and no record is handled twice',
    },
  },
  {
    id: 'a-log-that-was-cut-off-is-not-read-on',
    file: 'src/adapters/kafka/read/topic-reader.ts',
    find: '    this.#positions.cutOff(partition, high)\n',
    replace: '',
    test: {
      file: 'adapters/kafka/read/leaders.cluster.test.ts',
      name: 'a log that an unclean election cut off is read on at its new end',
    },
  },
  {
    id: 'metrics-that-leave-out-what-has-no-name',
    file: 'src/adapters/metrics/forwarder-gauges.ts',
    find: 'return unnamed > 0 ? [...shown, rest] : shown',
    replace: 'return shown',
    test: {
      file: 'adapters/metrics/bounded-metrics.test.ts',
      name: 'whatever is shown by name, sums over all destinations are exact',
    },
  },
  {
    id: 'calls-kept-for-as-long-as-the-ledger',
    file: 'src/adapters/metrics/forwarder-gauges.ts',
    find: 'exposeWaiting(gauges, callsMs)',
    replace: 'exposeWaiting(gauges, heldMs ?? callsMs)',
    test: {
      file: 'adapters/metrics/forwarder-metrics.test.ts',
      name: 'gauges are evaluated when the page is read',
    },
  },
  {
    id: 'metrics-that-hide-an-endpoint-that-is-down',
    file: 'src/adapters/metrics/forwarder-gauges.ts',
    find: '(needsAttention && left-- > 0)',
    replace: '(needsAttention && left-- < 0)',
    test: {
      file: 'adapters/metrics/bounded-metrics.test.ts',
      name: 'an endpoint that is down is shown by name',
    },
  },
  {
    id: 'pages-take-the-room-of-events',
    file: 'src/operators/catalogue/database.ts',
    find: 'isNamedByPlace(type) ? this.#maxLength / 2 : this.#maxLength',
    replace: 'this.#maxLength',
    test: {
      file: 'core/catalogue/event-schemas.test.ts',
      name: 'pages and screens whose names change with each call crowd out no event, of their source or of another',
    },
  },
  {
    id: 'a-read-that-waits-for-kafka-without-end',
    file: 'src/console/request.ts',
    find: "const isRead = operation.method === 'GET'",
    replace: "const isRead = operation.method === 'PUT'",
    test: {
      file: 'adapters/http/console-server.test.ts',
      name: 'a read goes on for as long as Kafka answers, and once it does not it is answered with 503, and is over',
    },
  },
]
