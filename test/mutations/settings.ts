import type { Mutation } from '../../scripts/mutations/mutation.ts'

/** What is set, who is in an audience, and who is forgotten. */
export const settings: readonly Mutation[] = [
  {
    id: 'a-command-refused-by-what-was-read-before',
    file: 'src/adapters/folded-log/settings-log.ts',
    find: 'if (await this.#readOn()) continue',
    replace: 'if (now() < 0 && (await this.#readOn())) continue',
    test: {
      file: 'adapters/folded-log/settings-log.test.ts',
      name: 'a command knows what another process has changed just before',
    },
  },
  {
    id: 'a-new-source-called-unknown',
    file: 'src/forwarder/plan/settings-catch-up.ts',
    find: 'if (this.#caughtUpAt > time) return null',
    replace: 'if (this.#caughtUpAt > time || time > 0) return null',
    test: {
      file: 'pipeline/settings/settings.test.ts',
      name: 'a call of a source that is new to the forwarder waits for the settings log',
    },
  },
  {
    id: 'settings-of-dev-taken-for-another-cluster',
    file: 'src/config/dev-env.ts',
    find: 'return isOther ? {} : left',
    replace: 'return isOther && left.KAFKA_BROKERS === undefined ? {} : left',
    test: {
      file: 'config/dev-env.test.ts',
      name: 'a part takes nothing of what dev left once it is given any setting of a cluster, an equal one or a secret too',
    },
  },
  {
    id: 'private-addresses-set-by-files',
    file: 'src/core/apply/apply-rules.ts',
    find: 'decide(command, this.draft.state, this.#rules)',
    replace: 'decide(command, this.draft.state, { ...this.#rules, hostRefusal: () => null })',
    test: {
      file: 'pipeline/settings/settings-file.test.ts',
      name: 'a private address is refused alike by commands, files and the API of processes that do not allow it, and stays where it is',
    },
  },
  {
    id: 'any-variable-in-a-settings-file',
    file: 'src/operators/settings/file-command.ts',
    find: 'if (ownNames.has(variable)) return',
    replace: 'if (prefixes.length === 0 && ownNames.has(variable)) return',
    test: {
      file: 'pipeline/settings/settings-file.test.ts',
      name: 'a file cannot have settings of Postrider, nor any variable that nobody meant for it, sent to its URLs',
    },
  },
  {
    id: 'secrets-in-clear',
    file: 'src/adapters/secrets.ts',
    find: "const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])",
    replace: "cipher.update(text, 'utf8')\n    cipher.final()\n    const ciphertext = Buffer.from(text)",
    test: {
      file: 'adapters/secrets.test.ts',
      name: 'every sealed text can be opened again',
    },
  },
  {
    id: 'sealed-bytes-opened-although-they-were-changed',
    file: 'src/adapters/secrets.ts',
    find: `      return Buffer.concat([
        decipher.update(Buffer.from(ciphertext, 'base64url')),
        decipher.final(),
      ]).toString('utf8')`,
    replace: "      return decipher.update(Buffer.from(ciphertext, 'base64url')).toString('utf8')",
    test: { file: 'adapters/secrets.test.ts', name: 'bytes that were changed cannot be opened' },
  },
  {
    id: 'secrets-not-struck-out-of-the-log',
    file: 'src/adapters/log.ts',
    find: "streamWrite: (line) => secrets.reduce((text, secret) => text.replaceAll(secret, '…'), line),",
    replace: 'streamWrite: (line) => line,',
    test: { file: 'adapters/log.test.ts', name: 'a secret that gets into a log line is redacted' },
  },
  {
    id: 'only-the-first-key-opens',
    file: 'src/adapters/secrets.ts',
    find: 'const byId = new Map(known.map((key) => [key.id, key]))',
    replace: 'const byId = new Map(known.slice(0, 1).map((key) => [key.id, key]))',
    test: { file: 'adapters/secrets.test.ts', name: 'the first key seals, and every key opens' },
  },
  {
    id: 'secrets-that-open-anywhere',
    file: 'src/core/settings/settings.ts',
    find: "JSON.stringify(['header', name.toLowerCase(), destinationId, canonicalUrl(url)])",
    replace: '(void [name, url, canonicalUrl], sharedSecretPlace(destinationId))',
    test: {
      file: 'adapters/secrets.test.ts',
      name: 'a secret that was moved to another place cannot be opened, and neither can one that claims to be sealed for no place',
    },
  },
  {
    id: 'secrets-sealed-for-no-place-opened',
    file: 'src/adapters/secrets.ts',
    find: 'if (sealed.bound || !byId.has(sealed.keyId)) return decrypt(sealed, place)',
    replace: 'if (sealed.bound || sealed.keyId) return decrypt(sealed, sealed.bound ? place : null)',
    test: {
      file: 'console/secrets-rotation.test.ts',
      name: 'a secret that a development version sealed without a place is not used until a rotation binds it to its place',
    },
  },
  {
    id: 'secrets-sealed-with-any-key',
    file: 'src/operators/settings/secrets.ts',
    find: 'anyKey || used.size === 0) return first',
    replace: 'anyKey || used.size >= 0) return first',
    test: {
      file: 'console/sealing-key.test.ts',
      name: 'a key under which no secret is sealed is refused, for a new destination and for the only one',
    },
  },
  {
    id: 'views-readable-by-every-user',
    file: 'src/adapters/store/view-file.ts',
    find: '  fchmodSync(descriptor, 0o600)\n',
    replace: '  void fchmodSync\n',
    test: {
      file: 'adapters/store/view-file.test.ts',
      name: 'views of topics are readable only by their user, whatever their modes were before',
    },
  },
  {
    id: 'writers-that-overwrite-one-another',
    file: 'src/core/settings/fold.ts',
    find: "return expectedVersion === this.#version ? 'accepted' : 'stale'",
    replace: "return expectedVersion <= this.#version ? 'accepted' : 'stale'",
    test: {
      file: 'core/settings/fold.test.ts',
      name: 'of two events on one version the first counts and the second is stale',
    },
  },
  {
    id: 'every-fold-copied',
    file: 'src/core/settings/fold.ts',
    find: 'this.#version++\n    this.#remember(record, appendedAt)',
    replace: 'this.#version++\n    void this.state\n    this.#remember(record, appendedAt)',
    test: {
      file: 'core/settings/fold.test.ts',
      name: 'folding an event costs the same, however many came before',
    },
  },
  {
    id: 'an-event-of-a-newer-version-passed-over',
    file: 'src/core/settings/replay.ts',
    find: 'this.#held = { offset, reason: entry.reason }\n        return null',
    replace: "this.#held = null\n        return 'stale'",
    test: {
      file: 'adapters/folded-log/settings-follower.test.ts',
      name: 'an event of a newer version keeps the settings in their last state until it is skipped',
    },
  },
  {
    id: 'garbage-that-ends-the-settings',
    file: 'src/adapters/folded-log/settings-follower.ts',
    find: 'return this.#ignored.add(taken, messageOf(error))',
    replace: 'throw error',
    test: {
      file: 'adapters/folded-log/settings-follower.test.ts',
      name: 'garbage in the settings log is ignored, logged with its offset, and counted',
    },
  },
  {
    id: 'settings-followed-only-at-the-start',
    file: 'src/forwarder/forwarder.ts',
    find: 'settings.onChange(() => this.#applySettings())',
    replace: '',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a source is called unknown only after the settings log has been read to its end',
    },
  },
  {
    id: 'source-called-unknown-before-the-end-of-the-log-is-read',
    file: 'src/forwarder/plan/call-planner.ts',
    find: "if (pending) return { kind: 'pending', settled: pending }",
    replace: 'void pending',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a source is called unknown only after the settings log has been read to its end',
    },
  },
  {
    id: 'fresh-message-id-for-a-repeated-membership',
    file: 'src/operators/audiences/sync.ts',
    find: "return hash('sha256', `${audienceId}\\0${userId}\\0${syncId}`, 'base64url')",
    replace:
      "return hash('sha256', `${audienceId}\\0${userId}\\0${syncId}\\0${performance.now()}`, 'base64url')",
    test: {
      file: 'console/computations/sync-crash.test.ts',
      name: 'two syncs in a row, killed at any point, with ',
    },
  },
  {
    id: 'a-sync-that-was-cut-off-not-finished',
    file: 'src/operators/audiences/sync.ts',
    find: 'await sink.writeCalls(memberships.map((membership) => callOf(membership, syncMessageId(membership))))\n    for (',
    replace: 'void callOf\n    for (',
    test: {
      file: 'console/computations/sync-crash.test.ts',
      name: 'two syncs in a row, killed at any point, with ',
    },
  },
  {
    id: 'two-audiences-of-one-property',
    file: 'src/core/settings/computation-rules.ts',
    find: 'if (!other) return []',
    replace: "if (!other || key !== '') return []",
    test: {
      file: 'core/settings-computations.test.ts',
      name: 'audiences and traits share one set of ids and property names',
    },
  },
  {
    id: 'calls-of-an-erased-user-not-dropped',
    file: 'src/core/erasure/erasures.ts',
    find: 'return erasedAt !== 0 && erasedAt >= appendedAt',
    replace: 'return erasedAt < 0 && erasedAt >= appendedAt',
    test: {
      file: 'pipeline/privacy/erasures.test.ts',
      name: 'calls that wait in a tier are dropped as erased, also after a restart, and others are not',
    },
  },
  {
    id: 'delete-calls-erased-with-the-user',
    file: 'src/core/erasure/erasures.ts',
    find: "if (this.#size === 0 || type === 'delete') return false",
    replace: 'if (this.#size === 0) return false',
    test: { file: 'core/erasure/erasures.test.ts', name: 'delete calls are exempt, whatever sent them' },
  },
  {
    id: 'dead-letters-of-an-erased-user-shown',
    file: 'src/operators/dead-letters/dead-letters.ts',
    find: 'if (!known.covers(stored.owner)) yield stored',
    replace: 'if (known) yield stored',
    test: {
      file: 'cli/dead-letters/dead-letters.test.ts',
      name: 'dead letters that a deletion request covers are not listed, shown or replayed',
    },
  },
  {
    id: 'fresh-message-id-for-a-repeated-delete-call',
    file: 'src/core/erasure/deletion.ts',
    find: 'const messageId = deleteIdPrefix(requestId) + hash',
    replace: 'const messageId = deleteIdPrefix(requestId) + hash + String(Math.random())',
    test: {
      file: 'core/erasure/deletion.test.ts',
      name: 'the delete call is valid, is the same each time, and renders to the documented body',
    },
  },
  {
    id: 'a-paused-destination-sent-to',
    file: 'src/forwarder/plan/routing.ts',
    find: 'destinations: planned.filter(({ pauseId }) => pauseId === null)',
    replace: 'destinations: planned',
    test: {
      file: 'pipeline/settings/pause.test.ts',
      name: 'calls of a paused destination are held, each once, and others of the same calls are delivered',
    },
  },
  {
    id: 'held-retries-expired',
    file: 'src/forwarder/plan/retry-planner.ts',
    find: 'if (endpoints.length > 0 && destination.pauseId !== null) {',
    replace: 'if (endpoints.length < 0) {',
    test: {
      file: 'pipeline/settings/pause.test.ts',
      name: 'retries that come due during a pause are held, however long it lasts, and not attempted',
    },
  },
  {
    id: 'queues-sent-after-a-pause-came',
    file: 'src/forwarder/send/dispatcher.ts',
    find: "if (active.destination.pauseId !== null) return 'hold'",
    replace: '',
    test: {
      file: 'forwarder/send/dispatcher.test.ts',
      name: 'what waits when its destination is paused is held: in queues, in lanes, and on connections that are not there yet',
    },
  },
  {
    id: 'a-version-shown-before-what-was-held-is-committed',
    file: 'src/forwarder/commit/settled-version.ts',
    find: 'if (ledger.hasMarkedHeld(this.#codes)) return',
    replace: 'void ledger',
    test: {
      file: 'forwarder/commit/partition-ledger.test.ts',
      name: 'a version of the settings is shown once all that was held before it was applied is committed',
    },
  },
  {
    id: 'tallies-of-any-size',
    file: 'src/forwarder/commit/partition-ledger.ts',
    find: 'if (horizon < end)',
    replace: 'if (horizon < 0)',
    test: {
      file: 'forwarder/commit/partition-ledger.test.ts',
      name: 'a tally that would name too many runs of held offsets takes the first ones, and the next goes on',
    },
  },
  {
    id: 'pauses-without-an-end',
    file: 'src/adapters/folded-log/pause-ends.ts',
    find: 'timer = setTimeout(() => void end(), Math.min(waitMs, longestTimerMs))',
    replace: 'void [end, waitMs, longestTimerMs]',
    test: {
      file: 'pipeline/settings/pause.test.ts',
      name: 'a pause with an end ends by itself, also where the forwarder was started during it',
    },
  },
  {
    id: 'replays-that-forget-how-far-they-are',
    file: 'src/operators/replay/outbox.ts',
    find: 'for (const each of parts.before) this.#done.set(keyOfPlace(each), each)',
    replace: 'void parts.before',
    test: {
      file: 'pipeline/replay/replay-jobs.test.ts',
      name: 'a replay whose process is killed goes on in another one, and repeats no more than was in the air',
    },
  },
  {
    id: 'replays-under-one-id',
    file: 'src/core/replay/replayed-delivery.ts',
    find: "id: kind === 'delivered' ? `${id}:${job.id}` : id,",
    replace: 'id,',
    test: {
      file: 'pipeline/replay/replay.test.ts',
      name: 'what a receiver had gets a delivery id of its own and the same messageId; filters choose among it',
    },
  },
  {
    id: 'replays-that-skip-what-a-tally-leaves-open',
    file: 'src/core/replay/replay-facts.ts',
    find: 'return epochs.every((index) =>',
    replace: 'return epochs.some((index) =>',
    test: {
      file: 'core/replay/replay-facts.test.ts',
      name: 'a call counts as skipped by the settings of when it was finished, and near a change by its tally',
    },
  },
  {
    id: 'held-retries-left-behind',
    file: 'src/operators/replay/call-run.ts',
    find: "if (!this.#job.only.includes('held')) return true",
    replace: 'if (this.#job.id) return true',
    test: {
      file: 'pipeline/replay/held.test.ts',
      name: 'the end of a pause sends what it held, calls and retries, once each and under their own ids',
    },
  },
  {
    id: 'second-failures-sent-after-a-crash',
    file: 'src/operators/replay/chosen-dead-letters.ts',
    find: '    await this.#recall(chosen, spans)\n',
    replace: '',
    test: {
      file: 'console/replays/replay-crash.test.ts',
      name: 'sent in full, in order and once, but for what a kill anywhere left unnoted',
    },
  },
  {
    id: 'replays-that-take-the-dead-letters-that-they-make',
    file: 'src/operators/replay/chosen-dead-letters.ts',
    find: 'if (!named) return { partition, low, high: Math.max(low, end) }',
    replace: 'if (!named) return { partition, low, high: Math.max(low, high, end) }',
    test: {
      file: 'console/replays/replay-crash.test.ts',
      name: 'sent in full, in order and once, but for what a kill anywhere left unnoted',
    },
  },
  {
    id: 'dead-letters-of-an-erased-user-replayed',
    file: 'src/operators/replay/chosen-dead-letters.ts',
    find: "if (this.#erasures.covers(stored.owner)) return { is: 'erased' }",
    replace: '',
    test: {
      file: 'cli/dead-letters/dead-letters.test.ts',
      name: 'dead letters that a deletion request covers are not listed, shown or replayed',
    },
  },
  {
    id: 'replays-that-note-what-is-not-sent-yet',
    file: 'src/operators/replay/outbox.ts',
    find: 'const refused = await topic.append(sent.map(({ record }) => record))',
    replace:
      'for (const each of looked.splice(0)) this.#complete(each)\n      await this.commit()\n      const refused = await topic.append(sent.map(({ record }) => record))',
    test: {
      file: 'console/replays/replay-crash.test.ts',
      name: 'sent in full, in order and once, but for what a kill anywhere left unnoted',
    },
  },
  {
    id: 'replays-of-pauses-that-wait-for-no-forwarder',
    file: 'src/operators/replay/call-run.ts',
    find: 'await this.#reader.readOn(this.#signal)\n    for (;;) {',
    replace: 'for (;;) {',
    test: {
      file: 'console/replays/replay-crash.test.ts',
      name: 'sent in full, in order and once, but for what a kill anywhere left unnoted',
    },
  },
  {
    id: 'replays-finished-before-their-last-batch',
    file: 'src/operators/replay/call-run.ts',
    find: '      await this.#outbox.flush()\n      await this.#outbox.commit()\n      if (isThrough.every(Boolean) && knew) break',
    replace:
      '      if (isThrough.every(Boolean) && knew) break\n      await this.#outbox.flush()\n      await this.#outbox.commit()',
    test: {
      file: 'console/replays/replay-crash.test.ts',
      name: 'sent in full, in order and once, but for what a kill anywhere left unnoted',
    },
  },
  {
    id: 'stopped-replays-that-do-not-say-how-far-they-are',
    file: 'src/operators/replay/runner.ts',
    find: 'await outbox.commit().catch(() => {})',
    replace: 'void outbox',
    test: {
      file: 'console/replays/replay-crash.test.ts',
      name: 'sent in full, in order and once, wherever its process is told to stop',
    },
  },
  {
    id: 'pauses-that-use-up-the-window-of-what-they-hold',
    file: 'src/core/replay/replayed-delivery.ts',
    find: '(at === null ? null : at + waited)',
    replace: '(waited < 0 ? null : at)',
    test: {
      file: 'pipeline/replay/held.test.ts',
      name: 'after a pause longer than the retry window all that it held arrives, with a window of its own',
    },
  },
  {
    id: 'routes-that-keep-a-destination-of-before',
    file: 'src/forwarder/plan/routing.ts',
    find: 'this.#linked.get(sourceId)?.delete(place)',
    replace: '',
    test: { file: 'forwarder/plan/routing.test.ts', name: 'property: however the settings came about' },
  },
  {
    id: 'endpoints-at-rest-too-soon',
    file: 'src/forwarder/send/endpoint-queue.ts',
    find: "this.inFlight === 0 && this.breaker.phase === 'closed'",
    replace: 'this.inFlight === 0',
    test: {
      file: 'forwarder/send/head-of-line-monitor.test.ts',
      name: 'only endpoints that have something to do are looked at',
    },
  },
  {
    id: 'versions-that-do-not-name-the-commit',
    file: 'src/version.ts',
    find: 'manifest.gitHead ?? commitOf(root)',
    replace: 'manifest.gitHead ?? null',
    test: {
      file: 'version.test.ts',
      name: 'between two releases the version names the commit, wherever git keeps it',
    },
  },
  {
    id: 'an-event-written-that-nobody-can-read',
    file: 'src/adapters/folded-log/settings-log.ts',
    find: "if (entry.kind === 'unreadable') throw new Error(`the change would be ${entry.reason}`)",
    replace: 'void entry',
    test: {
      file: 'adapters/folded-log/settings-log.test.ts',
      name: 'an event that no version could read is not written, whatever the rules have let pass',
    },
  },
]
