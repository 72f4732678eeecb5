import type { Mutation } from '../../scripts/mutations/mutation.ts'

/** What strangers and senders can do to our HTTP servers. */
export const edges: readonly Mutation[] = [
  {
    id: 'one-source-takes-the-whole-budget',
    file: 'src/collector/request-budget.ts',
    find: 'return share.calls + count <= this.#limits.calls - this.#calls - count',
    replace: 'return this.#calls + count <= this.#limits.calls',
    test: { file: 'collector/collector.test.ts', name: 'no source can take the budget that others need' },
  },
  {
    id: 'calls-that-were-not-taken-count',
    file: 'src/collector/collector.ts',
    find: 'reservation.addCalls(added)',
    replace: 'reservation.addCalls(count)',
    test: {
      file: 'collector/collector.test.ts',
      name: 'only accepted calls count towards the budget, and only while they wait',
    },
  },
  {
    id: 'unknown-sources-share-the-budget-of-known-ones',
    file: 'src/collector/request-budget.ts',
    find: 'if (pool !== null && share.bytes + count > pool.maxBytes - pool.bytes - count) return false',
    replace: '',
    test: {
      file: 'collector/request-budget.test.ts',
      name: 'a single source gets half of the budget, and all unknown sources together get an eighth of its bytes',
    },
  },
  {
    id: 'one-sender-takes-all-memory-of-unknown-sources',
    file: 'src/collector/request-budget.ts',
    find: 'share.bytes + count > pool.maxBytes - pool.bytes - count',
    replace: 'pool.bytes + count > pool.maxBytes',
    test: {
      file: 'collector/attacks.test.ts',
      name: 'one sender of stalled bodies leaves memory for those of others whose key is in the body',
    },
  },
  {
    id: 'invalid-calls-use-up-the-rate-of-their-source',
    file: 'src/collector/collector.ts',
    find: 'this.#rates.count(source, count - notTaken, sender, notTaken)',
    replace: 'this.#rates.count(source, count, sender, 0)',
    test: {
      file: 'collector/attacks.test.ts',
      name: 'invalid calls in gzip refuse nothing of another sender of the same source',
    },
  },
  {
    id: 'invalid-calls-cost-their-sender-nothing',
    file: 'src/collector/source-rates.ts',
    find: 'if (notTaken > 0) this.#charge(senderKey(source, sender), notTaken, now)',
    replace: 'void [sender, notTaken]',
    test: {
      file: 'collector/collector.test.ts',
      name: 'invalid and repeated calls are limited by the same rate at their sender, and take nothing from others of the source',
    },
  },
  {
    id: 'suppressed-users-do-not-count-for-their-source',
    file: 'src/collector/collector.ts',
    find: "this.#metrics.calls(source.id, type, 'suppressed', 1)",
    replace: "this.#metrics.calls(source.id, type, 'suppressed', 1)\n        repeated++",
    test: {
      file: 'collector/collector.test.ts',
      name: 'how much a source may send does not show who is suppressed',
    },
  },
  {
    id: 'bots-use-up-the-quota-of-their-source',
    file: 'src/collector/collector.ts',
    find: 'const notTaken = rejectedCount + repeated + ofBots',
    replace: 'const notTaken = rejectedCount + repeated',
    test: {
      file: 'collector/collector.test.ts',
      name: 'what bots send that is dropped takes nothing of what their source may send',
    },
  },
  {
    id: 'servers-are-bots',
    file: 'src/collector/call-hygiene.ts',
    find: "const botRule = isClientSide ? bots : 'keep'",
    replace: 'void isClientSide\n  const botRule = bots',
    test: {
      file: 'collector/collector.test.ts',
      name: 'a source that drops bots answers them as anybody, and writes nothing of them',
    },
  },
  {
    id: 'apps-are-bots',
    file: 'src/collector/call-hygiene.ts',
    find: "userAgent !== '' && !appSdk.test(userAgent)",
    replace: "(void appSdk, userAgent !== '')",
    test: {
      file: 'collector/call-hygiene.test.ts',
      name: 'an app is no bot: its SDK names itself in the header, and the context says who uses it',
    },
  },
  {
    id: 'an-address-that-is-written-another-way-stays',
    file: 'src/core/json/edit-members.ts',
    find: 'if (keyOf(text, keyStart, keyEnd) !== name) {',
    replace: 'if (isFound || text.slice(keyStart + 1, keyEnd - 1) !== name) {',
    test: {
      file: 'collector/call-hygiene.test.ts',
      name: 'the address of a context is truncated or dropped, and all else keeps its spelling',
    },
  },
  {
    id: 'what-is-no-address-stays-as-it-is',
    file: 'src/collector/call-hygiene.ts',
    find: 'return address && `"${address}"`',
    replace: 'return address === null ? value : `"${address}"`',
    test: {
      file: 'collector/call-hygiene.test.ts',
      name: 'the address of a context is truncated or dropped, and all else keeps its spelling',
    },
  },
  {
    id: 'no-limit-on-the-rate-of-a-source',
    file: 'src/collector/collector.ts',
    find: 'this.#rates.count(source, count - notTaken, sender, notTaken)',
    replace: '',
    test: {
      file: 'collector/collector.test.ts',
      name: 'only a source above its rate is refused, until it is below the rate again',
    },
  },
  {
    id: 'budget-kept-until-the-sender-goes-away',
    file: 'src/adapters/http/collector-server.ts',
    find: '      reservation.release()',
    replace: "      request.raw.socket.once('close', () => reservation.release())",
    test: {
      file: 'adapters/http/collector-server.test.ts',
      name: 'a client that does not read its answer keeps no budget and is disconnected in time',
    },
  },
  {
    id: 'requests-sent-ahead-begin-at-once',
    file: 'src/adapters/http/pipelining.ts',
    find: 'if (!turns.isBusy) {',
    replace: 'if (turns) {',
    test: {
      file: 'adapters/http/collector-server.test.ts',
      name: 'requests sent ahead over one connection begin one after the other, and are all answered in order',
    },
  },
  {
    id: 'requests-sent-ahead-are-read-meanwhile',
    file: 'src/adapters/http/pipelining.ts',
    find: 'if (turns.waiting.length > 0 || turns.isOver) socket.pause()',
    replace: '',
    test: {
      file: 'adapters/http/collector-server.test.ts',
      name: 'a connection that sends on and on is read no faster than it is answered',
    },
  },
  {
    id: 'requests-sent-ahead-follow-within-one-turn',
    file: 'src/adapters/http/pipelining.ts',
    find: 'setImmediate(nextTurn, socket, turns)',
    replace: 'nextTurn(socket, turns)',
    test: {
      file: 'adapters/http/collector-server.test.ts',
      name: 'connections that send ahead delay others by one request each',
    },
  },
  {
    id: 'an-answer-waits-for-its-reader-for-ever',
    file: 'src/adapters/http/serving.ts',
    find: 'const timer = setTimeout(() => response.destroy(), withinMs).unref()',
    replace: 'const timer = setTimeout(() => {}, withinMs).unref()',
    test: {
      file: 'adapters/http/collector-server.test.ts',
      name: 'a client that does not read its answer keeps no budget and is disconnected in time',
    },
  },
  {
    id: 'bodies-kept-chunk-by-chunk',
    file: 'src/adapters/http/body.ts',
    find: 'chunk.copy(bytes, at)',
    replace: 'chunk.copy(bytes, at)\n        message.on(String(at), () => void chunk)',
    test: {
      file: 'collector/attacks.test.ts',
      name: 'bodies in chunks of a byte take no more memory than others',
    },
  },
  {
    id: 'a-sender-that-has-left-is-waited-for',
    file: 'src/adapters/http/body.ts',
    find: 'if (message.destroyed) throw new BodyRefused(null)',
    replace: '',
    test: {
      file: 'adapters/http/collector-server.test.ts',
      name: 'a sender that leaves while its source is looked up takes no budget',
    },
  },
  {
    id: 'bodies-may-drip',
    file: 'src/adapters/http/body.ts',
    find: 'patience.wait(() => settle(tooSlow))',
    replace: 'patience.stop()',
    test: {
      file: 'adapters/http/collector-server.test.ts',
      name: 'a body that trickles is cut off after a grace period, and one that arrives steadily is not',
    },
  },
  {
    id: 'lists-looked-into-before-their-length',
    file: 'src/operators/check.ts',
    find: 'const tooLong = lengthFaults(schema, value)',
    replace: 'const tooLong = lengthFaults(schema, null)',
    test: {
      file: 'adapters/http/console-attacks.test.ts',
      name: 'lists that are too long are refused before their items are checked',
    },
  },
  {
    id: 'parameters-looked-for-in-the-prototype',
    file: 'src/operators/check.ts',
    find: 'Object.hasOwn(schema.shape, name)',
    replace: 'name in schema.shape',
    test: {
      file: 'adapters/http/console-attacks.test.ts',
      name: 'parameters named like properties of Object.prototype are unknown parameters',
    },
  },
  {
    id: 'bugs-in-requests-with-a-body-not-logged',
    file: 'src/console/server.ts',
    find: 'if (!answer && !reply.raw.destroyed)',
    replace: 'if (!answer && !request.raw.destroyed)',
    test: {
      file: 'adapters/http/console-attacks.test.ts',
      name: 'a bug is logged, whether the request had a body or not',
    },
  },
  {
    id: 'wrong-tokens-answered-at-once',
    file: 'src/console/access.ts',
    find: 'await sleep(delayMs)',
    replace: 'await sleep(0)',
    test: {
      file: 'adapters/http/console-attacks.test.ts',
      name: 'many wrong tokens cause few log lines, and their answers are delayed',
    },
  },
  {
    id: 'lists-may-drip',
    file: 'src/console/bodies.ts',
    find: 'patience.wait(() => expired.reject(drips(pace.perSecond)))',
    replace: 'patience.wait(() => {})',
    test: {
      file: 'adapters/http/console-attacks.test.ts',
      name: 'a list that trickles is refused after a grace period, and one that arrives steadily is not',
    },
  },
]
