import type { Mutation } from '../../scripts/mutations/mutation.ts'

/** What goes out, and to whom. */
export const requests: readonly Mutation[] = [
  {
    id: 'a-signature-over-other-bytes-than-the-body',
    file: 'src/forwarder/plan/destination-runtime.ts',
    find: 'this.#bodySigner.sign(body)',
    replace: "this.#bodySigner.sign(Buffer.concat([body, Buffer.from('\\n')]))",
    test: {
      file: 'pipeline/delivery/bodies.test.ts',
      name: 'other programs compute the same signature',
      within: 'requests at a receiver',
    },
  },
  {
    id: 'a-signature-over-json-that-was-parsed-and-written-again',
    file: 'src/forwarder/plan/destination-runtime.ts',
    find: 'this.#bodySigner.sign(body)',
    replace: 'this.#bodySigner.sign(Buffer.from(JSON.stringify(JSON.parse(Buffer.from(body).toString()))))',
    test: {
      file: 'pipeline/delivery/bodies.test.ts',
      name: 'each of the seven types arrives byte for byte, and signed',
      within: 'requests at a receiver',
    },
  },
  {
    id: 'standard-webhooks-signed-by-the-newest-secret-only',
    file: 'src/forwarder/send/signed-request.ts',
    find: 'this.#keys = secrets.map((secret) => createSecretKey(keyBytes(secret)))',
    replace: 'this.#keys = secrets.slice(0, 1).map((secret) => createSecretKey(keyBytes(secret)))',
    test: { file: 'forwarder/send/standard-webhooks.test.ts', name: 'every active secret signs' },
  },
  {
    id: 'json-text-put-into-the-body-unchecked',
    file: 'src/core/json/canonical-json.ts',
    find: 'if (depth === 0) return at === text.length',
    replace: 'if (depth === 0) return true',
    test: {
      file: 'core/json/canonical-json.test.ts',
      name: 'text that is not exactly one JSON object is rejected',
    },
  },
  {
    id: 'numbers-that-no-double-holds-written-again',
    file: 'src/core/json/canonical-json.ts',
    find: 'isExact(source) ? Number(source) : rawJSON(source)',
    replace: 'isExact(source) ? Number(source) : Number(source)',
    test: {
      file: 'core/json/canonical-json.test.ts',
      name: 'a number that a double cannot represent keeps its text while the rest is rewritten',
    },
  },
  {
    id: 'maps-signed-as-they-were-spelled',
    file: 'src/core/call/check-call.ts',
    find: 'call[field] = canonical',
    replace: 'call[field] = text',
    test: {
      file: 'core/call/body.test.ts',
      name: 'property: the body equals JSON.stringify(JSON.parse(body)), so a signature over either is the same',
    },
  },
  {
    id: 'keys-with-escapes-left-to-json-parse',
    file: 'src/core/json/parse-json.ts',
    find: 'return numberOf || hasEscapedKey(text) ?',
    replace: 'return numberOf && hasEscapedKey(text) ?',
    test: {
      file: 'core/json/parse-json.test.ts',
      name: 'a key with an escape is parsed as it is spelled, whatever keys were parsed before (nodejs/node#63785)',
    },
  },
  {
    id: 'keys-that-come-twice-taken-for-canonical',
    file: 'src/core/json/canonical-json.ts',
    find: 'keyMarks[to] = mark',
    replace: 'keyMarks[to] = ~mark',
    test: {
      file: 'core/json/canonical-json.test.ts',
      name: 'property: an object in any spelling becomes JSON.stringify(JSON.parse(text))',
    },
  },
  {
    id: 'an-alias-under-its-old-id',
    file: 'src/core/call/analytics-call.ts',
    find: 'return call.userId || call.anonymousId || null',
    replace:
      "return ('previousId' in call && (call.previousId as string)) || call.userId || call.anonymousId || null",
    test: {
      file: 'core/call/analytics-call.test.ts',
      name: 'the key of every call is its userId, else its anonymousId; the key of an alias is the new id',
    },
  },
  {
    id: 'a-response-that-is-not-whole-in-time-taken-for-one',
    file: 'src/adapters/webhook/attempt.ts',
    find: "else this.fail('timeout', `no complete response ${limit} (status ${this.#status})`)",
    replace: 'else this.#settleByStatus(false)',
    test: {
      file: 'adapters/webhook/deadline.test.ts',
      name: 'an attempt times out when its response takes longer',
    },
  },
  {
    id: 'a-member-of-another-map',
    file: 'src/core/json/object-text.ts',
    find: '!== quote || text.slice(start, end) !== key) continue',
    replace: '!== quote || text.length < end) continue',
    test: {
      file: 'core/expression/paths.test.ts',
      name: 'what keys lead to in a map is what reading the map gives, however it is written',
    },
  },
  {
    id: 'redirects-taken-for-success',
    file: 'src/core/delivery/outcome.ts',
    find: "if (status >= 200 && status < 300) return 'success'",
    replace: "if (status >= 200 && status < 400) return 'success'",
    test: { file: 'core/delivery/response.test.ts', name: 'every status has its outcome' },
  },
  {
    id: 'all-connections-opened-at-once',
    file: 'src/adapters/webhook/connection.ts',
    find: 'this.#left--',
    replace: 'void this.#left',
    test: {
      file: 'adapters/webhook/openings.test.ts',
      name: 'a thousand connections are opened over many turns, a few in each',
    },
  },
  {
    id: 'any-number-of-connections-opening-at-once',
    file: 'src/adapters/webhook/connection.ts',
    find: '(this.#opening.get(origin) ?? 0) < openingPerOrigin',
    replace: '(this.#opening.get(origin) ?? 0) < Infinity',
    test: {
      file: 'adapters/webhook/openings.test.ts',
      name: 'while many connections of an origin are opening, the next waits until one of them is open',
    },
  },
  {
    id: 'a-connection-that-is-open-counts-as-opening',
    file: 'src/adapters/webhook/connection.ts',
    find: 'this.#endOpening()\n    this.socket = socket',
    replace: 'this.socket = socket',
    test: {
      file: 'adapters/webhook/openings.test.ts',
      name: 'a connection that is open makes room for another',
    },
  },
  {
    id: 'connections-that-open-slowly-hold-up-the-rest',
    file: 'src/adapters/webhook/connection.ts',
    find: '!this.#hasRoom(origin) && now - queue[0]!.since < this.#waitMs',
    replace: '!this.#hasRoom(origin)',
    test: {
      file: 'adapters/webhook/openings.test.ts',
      name: 'a connection waits for those that are opening for half a second at most',
    },
  },
  {
    id: 'a-connection-of-its-own-for-each-that-waits',
    file: 'src/adapters/webhook/origin.ts',
    find: 'if (this.#unopened.size > 0) {',
    replace: 'if (this.#unopened.size > Infinity) {',
    test: {
      file: 'adapters/webhook/openings.test.ts',
      name: 'a request that waits for a connection to be opened goes out on one that comes free',
    },
  },
  {
    id: 'a-request-written-a-third-time',
    file: 'src/adapters/webhook/attempt.ts',
    find: '!(this.#written && this.#wasRepeated) &&',
    replace: '',
    test: {
      file: 'adapters/webhook/attempt.test.ts',
      name: 'a request is written twice at most, however often the connections that it is given end',
    },
  },
  {
    id: 'a-connection-opened-for-what-has-ended',
    file: 'src/adapters/webhook/connection.ts',
    find: 'this.#endOpening()\n    this.#hangup()',
    replace: 'this.#hangup()',
    test: {
      file: 'adapters/webhook/openings.test.ts',
      name: 'a connection that is closed before its turn came connects to nobody',
    },
  },
  {
    id: 'a-tls-session-that-nobody-holds',
    file: 'src/adapters/webhook/connection.ts',
    find: 'this.#owner.session = session\n',
    replace: 'void session\n',
    test: {
      file: 'adapters/webhook/tls.test.ts',
      name: 'further connections take up the session of the first, also after a garbage collection',
    },
  },
  {
    id: 'what-follows-a-response-taken-for-the-next-one',
    file: 'src/adapters/webhook/direct/direct-connection.ts',
    find: 'const isClean = end === data.length &&',
    replace: 'const isClean =',
    test: {
      file: 'adapters/webhook/connection.test.ts',
      name: 'what a server sends after a response is not the next one’s: ',
    },
  },
  {
    id: 'a-request-written-before-what-has-come-is-read',
    file: 'src/adapters/webhook/connection.ts',
    find: 'if (this.socket !== null) this.#polls.wait(this)',
    replace: 'if (this.socket !== null) this.onPolled()',
    test: {
      file: 'adapters/webhook/stray-answers.test.ts',
      name: 'a second answer to one request is never another request’s: ',
    },
  },
  {
    id: 'half-a-poll-phase-taken-for-a-whole-one',
    file: 'src/adapters/webhook/connection.ts',
    find: `      setImmediate(() => {
        for (const each of waiting) each.onPolled()
      })`,
    replace: '      for (const each of waiting) each.onPolled()',
    test: {
      file: 'adapters/webhook/stray-answers.test.ts',
      name: 'what came on an idle connection while the process was busy is not an answer: ',
    },
  },
  {
    id: 'the-first-request-written-before-what-has-come-is-read',
    file: 'src/adapters/webhook/connection.ts',
    find: `this.counts.resumed++
    this.#polls.wait(this)`,
    replace: `this.counts.resumed++
    this.onPolled()`,
    test: {
      file: 'adapters/webhook/stray-answers.test.ts',
      name: 'an answer that came before the first request of its connection is not its answer: ',
    },
  },
  {
    id: 'tls-connections-closed-for-a-late-report-of-a-write',
    file: 'src/adapters/webhook/connection.ts',
    find: 'return this.isLarge && ',
    replace: 'return ',
    test: {
      file: 'adapters/webhook/tls.test.ts',
      name: 'a connection is used again although its answer came before the write was reported to be done',
    },
  },
  {
    id: 'interim-responses-without-a-bound',
    file: 'src/adapters/webhook/direct/response-reader.ts',
    find: 'if (this.#interims > maxInterims || this.#interimBytes > maxPartBytes)',
    replace: 'if (this.#interims < 0)',
    test: {
      file: 'adapters/webhook/response-reader.test.ts',
      name: 'a malformed response is refused however it is cut, and the error says nothing of it: ',
    },
  },
  {
    id: 'a-response-without-a-bound',
    file: 'src/adapters/webhook/direct/response-reader.ts',
    find: 'const room = maxRawBytes - this.#rawBytes',
    replace: 'const room = Infinity',
    test: {
      file: 'adapters/webhook/response-reader.test.ts',
      name: 'what is read of a response has a bound, whatever it consists of',
    },
  },
  {
    id: 'connections-that-live-for-ever',
    file: 'src/adapters/webhook/connection.ts',
    find: 'return ageMs > (failed ? lifeWithFailureMs : this.#lifeMs)',
    replace: 'return ageMs > (failed ? lifeWithFailureMs : Infinity)',
    test: {
      file: 'adapters/webhook/moving-names.test.ts',
      name: 'a name that moves is followed within five minutes, however much its connection is used',
    },
  },
  {
    id: 'connections-kept-to-a-host-that-fails',
    file: 'src/adapters/webhook/connection.ts',
    find: 'return ageMs > (failed ? lifeWithFailureMs : this.#lifeMs)',
    replace: 'return ageMs > (failed ? this.#lifeMs : this.#lifeMs)',
    test: {
      file: 'adapters/webhook/moving-names.test.ts',
      name: 'a name that moves is followed within half a minute where its old host answers 503',
    },
  },
  {
    id: 'a-tls-session-that-was-refused-offered-again',
    file: 'src/adapters/webhook/connection.ts',
    find: 'this.#owner.session === this.#session) this.#owner.session = null',
    replace: 'this.#owner.session === this.#session) void 0',
    test: {
      file: 'adapters/webhook/tls.test.ts',
      name: 'a TLS session that a server refuses is offered once, and the request is sent without it: ',
    },
  },
  {
    id: 'silent-names-that-stop-all-others',
    file: 'src/adapters/webhook/name-lookup.ts',
    find: 'if (this.#stuck === this.#slots) for',
    replace: 'if (this.#stuck > this.#slots) for',
    test: {
      file: 'adapters/webhook/name-lookup.test.ts',
      name: 'names whose servers are silent do not stop the look-ups of others',
    },
  },
  {
    id: 'one-address-after-the-other',
    file: 'src/adapters/webhook/dial.ts',
    find: 'this.#timer = setTimeout(() => this.#next(), nextAddressMs)',
    replace: 'this.#timer = undefined',
    test: {
      file: 'adapters/webhook/dial.test.ts',
      name: 'when the first address of a name is silent the second one is tried, and takes up TLS sessions',
    },
  },
  {
    id: 'a-connection-used-again-in-the-middle-of-a-request',
    file: 'src/adapters/webhook/direct/direct-connection.ts',
    find: ' && !this.isWriting',
    replace: '',
    test: {
      file: 'adapters/webhook/connection.test.ts',
      name: 'a connection is not used again after a response that came before its request was written',
    },
  },
  {
    id: 'a-response-cut-off-taken-for-a-whole-one',
    file: 'src/adapters/webhook/direct/response-reader.ts',
    find: 'return this.#state === State.untilEnd',
    replace: 'return this.#state !== State.head',
    test: {
      file: 'adapters/webhook/connection.test.ts',
      name: 'a response that is cut off before its last chunk is a network failure',
    },
  },
  {
    id: 'a-connection-kept-until-its-server-closes-it',
    file: 'src/adapters/webhook/connection.ts',
    find: 'seconds - earlierSeconds',
    replace: 'seconds',
    test: {
      file: 'adapters/webhook/connection.test.ts',
      name: 'a connection is closed two seconds before the server would close it, and not kept where that is now',
    },
  },
  {
    id: 'certificates-not-verified',
    file: 'src/adapters/webhook/dial.ts',
    find: 'rejectUnauthorized: true',
    replace: 'rejectUnauthorized: false',
    test: { file: 'adapters/webhook/tls.test.ts', name: 'nothing is sent to a server whose certificate is ' },
  },
  {
    id: 'no-guard-of-addresses-in-urls',
    file: 'src/adapters/webhook/address-guard.ts',
    find: 'const refusal = isIP(address) === 0 ? null : this.refusal(address)',
    replace: 'const refusal = isIP(address) >= 0 ? null : this.refusal(address)',
    test: {
      file: 'adapters/webhook/address-guard.test.ts',
      name: 'no connection is made to a forbidden address in the URL',
    },
  },
  {
    id: 'no-guard-of-addresses-from-dns',
    file: 'src/adapters/webhook/address-guard.ts',
    find: 'addresses = found.filter(({ address }) => this.refusal(address) === null)',
    replace: 'addresses = found',
    test: {
      file: 'adapters/webhook/address-guard.test.ts',
      name: 'no connection is made to a name that has only forbidden addresses',
    },
  },
  {
    id: 'names-resolved-once-and-for-all',
    file: 'src/adapters/webhook/address-guard.ts',
    find: 'this.#pending.delete(hostname)',
    replace: 'void hostname',
    test: {
      file: 'adapters/webhook/address-guard.test.ts',
      name: 'a name that changes to a forbidden address is refused at the next connection',
    },
  },
  {
    id: 'one-success-of-several-urls-not-enough',
    file: 'src/core/delivery/disposition.ts',
    find: "if (round.outcomes.some(({ outcome }) => outcome.kind === 'success')) return { kind: 'delivered' }",
    replace:
      "if (round.outcomes.every(({ outcome }) => outcome.kind === 'success')) return { kind: 'delivered' }",
    test: {
      file: 'core/delivery/disposition.test.ts',
      name: 'one success makes the delivery delivered, whatever the others did',
    },
  },
  {
    id: 'urls-that-refused-for-good-tried-again',
    file: 'src/core/delivery/disposition.ts',
    find: 'endpointIds: again.map(({ endpointId }) => endpointId)',
    replace: 'endpointIds: round.outcomes.map(({ endpointId }) => endpointId)',
    test: {
      file: 'core/delivery/disposition.test.ts',
      name: 'several URLs: only those that can be retried are retried',
    },
  },
  {
    id: 'integrations-ignored',
    file: 'src/forwarder/plan/call-planner.ts',
    find: 'if (findings?.isBlocked || !allowsWebhooks(call))',
    replace: 'if (findings?.isBlocked)',
    test: {
      file: 'pipeline/settings/settings.test.ts',
      name: 'the integrations of a call decide whether it goes to webhooks',
      within: 'settings changes while the forwarder runs',
    },
  },
  {
    id: 'a-delete-that-its-integrations-keep-away',
    file: 'src/core/call/check-call.ts',
    find: "type === 'delete' || ",
    replace: '',
    test: {
      file: 'core/call/integrations.test.ts',
      name: 'a delete goes to webhooks whatever its integrations say',
    },
  },
  {
    id: 'a-delete-that-a-choice-of-types-keeps-away',
    file: 'src/core/call/filter.ts',
    find: "if (type === 'delete') return null\n  if (names",
    replace: 'if (names',
    test: {
      file: 'core/settings/destination-options.test.ts',
      name: 'a call is sent if its type is chosen and, for track, its event too; a delete is always sent',
    },
  },
  {
    id: 'a-condition-that-is-not-asked',
    file: 'src/core/call/filter.ts',
    find: 'return verdict ? null : filtered',
    replace: 'return null',
    test: {
      file: 'pipeline/delivery/call-options.test.ts',
      name: 'a condition decides by what is in a call; errors count as no, and a delete passes',
      within: 'what a destination takes of calls: conditions, dropped paths and trace context',
    },
  },
  {
    id: 'a-condition-that-fails-counts-as-yes',
    file: 'src/core/call/filter.ts',
    find: "if (typeof verdict !== 'boolean') return { reason: 'filtered', fault: verdict.reason }",
    replace: "if (typeof verdict !== 'boolean') return null",
    test: {
      file: 'core/settings/destination-options.test.ts',
      name: 'a condition that is false or cannot be evaluated leaves a call out, but never a delete',
    },
  },
  {
    id: 'a-condition-that-may-take-for-ever',
    file: 'src/core/expression/call-expression.ts',
    find: 'if (!methods.includes(name))',
    replace: 'if (name === null)',
    test: {
      file: 'core/expression/call-expression.test.ts',
      name: 'an expression that could take long, or grow, is refused',
    },
  },
  {
    id: 'searches-within-searches',
    file: 'src/core/expression/call-expression.ts',
    find: 'if (isSearch(name) && isWithin)',
    replace: 'if (isSearch(name) && isWithin && name === null)',
    test: {
      file: 'core/expression/call-expression.test.ts',
      name: 'an expression that could take long, or grow, is refused',
    },
  },
  {
    id: 'a-body-with-what-was-to-be-dropped',
    file: 'src/core/shape/shape.ts',
    find: 'this.#redaction === null ? call : redacted(call, this.#redaction)',
    replace: 'call',
    test: {
      file: 'pipeline/delivery/call-options.test.ts',
      name: 'dropped paths are not in the body, which is signed as it is sent, retries too',
      within: 'what a destination takes of calls: conditions, dropped paths and trace context',
    },
  },
  {
    id: 'a-value-that-adds-to-a-path',
    file: 'src/core/shape/request-url.ts',
    find: 'path += encodeURIComponent(value.toWellFormed())',
    replace: 'path += value.toWellFormed()',
    test: {
      file: 'core/shape/shape.test.ts',
      name: 'values in a URL are percent-encoded whole, and the place where requests go is the same for all',
    },
  },
  {
    id: 'a-value-that-leads-up-a-path',
    file: 'src/core/shape/request-url.ts',
    find: "if (path.split('?', 1)[0]!.split('/').some(isDots))",
    replace: 'if (path === null)',
    test: {
      file: 'core/shape/shape.test.ts',
      name: 'a call without a value that the URL needs is unrenderable, and so is one that would leave its path',
    },
  },
  {
    id: 'a-value-that-ends-a-header',
    file: 'src/core/shape/shape.ts',
    find: 'if (!inOneLine.test(text))',
    replace: 'if (text === null)',
    test: {
      file: 'core/shape/shape.test.ts',
      name: 'a header’s value has no line end, and a header that is one hole is left out where the call has no value',
    },
  },
  {
    id: 'retries-that-forget-what-stands-in-holes',
    file: 'src/core/delivery/disposition.ts',
    find: 'filled: delivery.filled,',
    replace: 'filled: null,',
    test: {
      file: 'core/delivery/after-round.test.ts',
      name: 'each failed round makes the next delivery and leaves the previous one unchanged',
    },
  },
  {
    id: 'holes-of-a-header-that-nobody-fills',
    file: 'src/core/settings/destination-rules.ts',
    find: '...holesIn(value.text) }]',
    replace: '}]',
    test: {
      file: 'pipeline/delivery/request-shape.test.ts',
      name: 'a request has the method, path, headers and body of its destination’s templates, and a retry the same but for its attempt',
    },
  },
  {
    id: 'a-path-that-stops-at-an-array',
    file: 'src/core/json/drop-paths.ts',
    find: 'if (first !== openBracket) return text.slice(start, end)',
    replace: 'if (first !== openBracket || arrays >= 0) return text.slice(start, end)',
    test: {
      file: 'core/call/redaction.test.ts',
      name: 'a path through an array goes through each of its elements',
    },
  },
  {
    id: 'a-trace-that-was-not-asked-for',
    file: 'src/forwarder/plan/destination-runtime.ts',
    find: 'traceparent: this.passesTraceContext ? traceparent : null',
    replace: 'traceparent',
    test: {
      file: 'pipeline/delivery/call-options.test.ts',
      name: 'a traceparent goes from the request to every attempt and into the log, if it is wanted',
      within: 'what a destination takes of calls: conditions, dropped paths and trace context',
    },
  },
  {
    id: 'a-trace-that-stays-at-the-collector',
    file: 'src/adapters/kafka/write/call-batch-writer.ts',
    find: 'traceparent === null ? null : this.#tracedHeaders(traceparent)',
    replace: 'traceparent === null ? null : headers',
    test: {
      file: 'pipeline/delivery/call-options.test.ts',
      name: 'a traceparent goes from the request to every attempt and into the log, if it is wanted',
      within: 'what a destination takes of calls: conditions, dropped paths and trace context',
    },
  },
  {
    id: 'a-proxy-that-looks-names-up-itself',
    file: 'src/adapters/webhook/ways-out.ts',
    find: 'hostsOf: proxyResolves ? this.#unresolved : this.#addressesOfServers',
    replace: 'hostsOf: this.#unresolved',
    test: {
      file: 'adapters/webhook/tunnel.test.ts',
      name: 'an address that is not allowed is refused before the proxy hears of it',
    },
  },
  {
    id: 'a-proxy-of-a-destination-that-may-be-anywhere',
    file: 'src/adapters/webhook/ways-out.ts',
    find: 'isGiven ? new AddressGuard(everywhere, names) : guard',
    replace: 'new AddressGuard(everywhere, names) ?? guard',
    test: {
      file: 'adapters/webhook/tunnel.test.ts',
      name: 'the deployment’s proxy may be anywhere; one that a destination names only where its URLs may lead',
    },
  },
  {
    id: 'a-login-for-every-proxy',
    file: 'src/adapters/webhook/ways-out.ts',
    find: 'login: isGiven ? given.login : null',
    replace: 'login: given?.login ?? null',
    test: {
      file: 'adapters/webhook/tunnel.test.ts',
      name: 'a destination’s own proxy, or none, beats the deployment’s, and no connection is shared between them',
    },
  },
  {
    id: 'connections-shared-between-proxies',
    file: 'src/adapters/webhook/transport.ts',
    find: 'const name = [url.origin, proxy, ',
    replace: 'const name = [url.origin, ',
    test: {
      file: 'adapters/webhook/tunnel.test.ts',
      name: 'a destination’s own proxy, or none, beats the deployment’s, and no connection is shared between them',
    },
  },
  {
    id: 'what-a-proxy-sends-behind-its-answer-passed-over',
    file: 'src/adapters/webhook/tunnel.ts',
    find: 'if (this.#answer.length > end + 4) {',
    replace: 'if (this.#answer.length < end) {',
    test: {
      file: 'adapters/webhook/tunnel.test.ts',
      name: 'is the outcome proxy, and nothing gets to the server',
    },
  },
  {
    id: 'time-lost-at-a-proxy-charged-to-the-endpoint',
    file: 'src/adapters/webhook/attempt.ts',
    find: 'if (!this.#written && this.connection?.waitsForProxy)',
    replace: 'if (!this.#written && this.connection?.waitsForProxy === null)',
    test: {
      file: 'adapters/webhook/tunnel.test.ts',
      name: 'is the outcome proxy, and nothing gets to the server',
    },
  },
  {
    id: 'a-batch-with-calls-of-a-user-who-has-some-on-the-wire',
    file: 'src/forwarder/send/batches.ts',
    find: "    if (this.isBehind(attempt)) return 'behind'\n",
    replace: '',
    test: {
      file: 'forwarder/send/batches.test.ts',
      name: 'whatever is asked and answered, one user’s calls stay in order, each has one outcome, and none is left',
    },
  },
  {
    id: 'a-batch-that-is-refused-given-up-as-a-whole',
    file: 'src/forwarder/send/endpoint-queue.ts',
    find: 'if (!isOfOneCall || attempts.length === 1) {',
    replace: 'if (attempts.length > 0) {',
    test: {
      file: 'forwarder/send/batches.test.ts',
      name: 'a refused batch is halved until the refused call is found: that one alone is refused, and the order stays',
    },
  },
  {
    id: 'halves-of-a-refused-batch-put-back-in-the-wrong-order',
    file: 'src/forwarder/send/endpoint-queue.ts',
    find: 'for (const attempt of attempts.toReversed()) {',
    replace: 'for (const attempt of attempts) {',
    test: {
      file: 'forwarder/send/batches.test.ts',
      name: 'whatever is asked and answered, one user’s calls stay in order, each has one outcome, and none is left',
    },
  },
  {
    id: 'calls-of-a-withdrawn-batch-forgotten',
    file: 'src/forwarder/send/endpoint-queue.ts',
    find: "if (verdict === 'send' || verdict === 'wait') this.#attempts.unshift(batch.attempts[index]!)",
    replace: "if (verdict === 'wait') this.#attempts.unshift(batch.attempts[index]!)",
    test: {
      file: 'forwarder/send/batches.test.ts',
      name: 'what may not be sent any more leaves its batch when the connection is there, and the others go',
    },
  },
  {
    id: 'calls-that-wait-behind-their-user-counted-for-a-full-batch',
    file: 'src/forwarder/send/batches.ts',
    find: 'const goes = isFull || isUrgent || most < size || dueAt <= now',
    replace: 'const goes = attempts.length > 0',
    test: {
      file: 'forwarder/send/batches.test.ts',
      name: 'one user’s calls go together and in order, and later ones wait for them while others’ go on',
    },
  },
  {
    id: 'a-request-that-cannot-be-made-left-to-its-deadline',
    file: 'src/adapters/webhook/endpoint.ts',
    find: '      if (!attempt.isOver) attempt.drop()\n',
    replace: '',
    test: {
      file: 'adapters/webhook/withdrawing.test.ts',
      name: 'a request that cannot be made is refused at once, and its deadline tells of it no second time',
    },
  },
  {
    id: 'a-url-without-its-value-found-at-sending',
    file: 'src/forwarder/send/dispatcher.ts',
    find: 'if (lacking !== null) throw lacking',
    replace: 'void lacking',
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'a delivery that one of its URLs has no value for is sent to none of them, and takes nothing',
    },
  },
  {
    id: 'a-second-writing-that-nobody-is-asked-for',
    file: 'src/adapters/webhook/attempt.ts',
    find: 'if (this.#sink.mayStillGo?.() === false) {',
    replace: 'if (this.#sink.mayStillGo === null) {',
    test: {
      file: 'adapters/webhook/withdrawing.test.ts',
      name: 'what was written may go out once more only if it still may when its new connection is there',
    },
  },
  {
    id: 'a-batch-halved-where-it-is-worth-another-try',
    file: 'src/forwarder/send/endpoint-queue.ts',
    find: ' && !canRetry(outcome)',
    replace: '',
    test: {
      file: 'forwarder/send/batches.test.ts',
      name: 'a batch that is worth another try as it is comes back as a whole: no request is made in halves',
    },
  },
  {
    id: 'an-audit-that-leaves-out-what-none-has-looked-at',
    file: 'src/operators/audit/runs.ts',
    find: 'const goesOn = since === null || isFirst || (before !== null && since <= before)',
    replace: 'const goesOn = since !== undefined',
    test: {
      file: 'console/audit/audit-running.test.ts',
      name: 'the next audit by the clock takes in all that no audit has looked at, however narrow or slow the last one was',
    },
  },
]
