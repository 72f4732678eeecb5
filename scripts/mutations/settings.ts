import type { Mutation } from './mutation.ts'

const told =
  'A sync, change or deletion that is killed anywhere, followed by any, tells of each change at least once and under one id'
const erased = "What waits of a deleted user's earlier calls is dropped; later calls and other users' are not"
const linear =
  'Folding the settings costs the same for each event, however many there are; keys of requests are forgotten after 40 days'
const garbage =
  'Garbage in the settings, erasures or memberships is ignored by every reader alike, named and counted'
const held =
  'An event that a newer version wrote stops nobody: the settings stay as they were, and it can be skipped'
const place = 'A secret opens only where it was set: its purpose, name, destination and URL'
const rightKey =
  'It can be changed with processes restarted in any order, and a command with a wrong key is refused'
const secret = 'Secrets are encrypted from the first event on, and never shown'

/** What is set, who is in an audience, and who is forgotten. */
export const settings: readonly Mutation[] = [
  {
    name: 'secrets in clear',
    promise: secret,
    file: 'src/adapters/secrets.ts',
    find: "const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])",
    replace: "cipher.update(text, 'utf8')\n    cipher.final()\n    const ciphertext = Buffer.from(text)",
    test: {
      file: 'adapters/secrets.test.ts',
      name: 'what is sealed is opened again, whatever the text',
    },
  },
  {
    name: 'sealed bytes opened although they were changed',
    promise: secret,
    file: 'src/adapters/secrets.ts',
    find: `      return Buffer.concat([
        decipher.update(Buffer.from(ciphertext, 'base64url')),
        decipher.final(),
      ]).toString('utf8')`,
    replace: "      return decipher.update(Buffer.from(ciphertext, 'base64url')).toString('utf8')",
    test: { file: 'adapters/secrets.test.ts', name: 'bytes that were changed are not opened' },
  },
  {
    name: 'secrets not struck out of the log',
    promise: 'No secret reaches a log',
    file: 'src/adapters/log.ts',
    find: "streamWrite: (line) => secrets.reduce((text, secret) => text.replaceAll(secret, '…'), line),",
    replace: 'streamWrite: (line) => line,',
    test: { file: 'adapters/log.test.ts', name: 'a secret that slips into a line is struck out' },
  },
  {
    name: 'only the first key opens',
    promise: 'The encryption key can be changed while calls are delivered',
    file: 'src/adapters/secrets.ts',
    find: 'const byId = new Map(known.map((key) => [key.id, key]))',
    replace: 'const byId = new Map(known.slice(0, 1).map((key) => [key.id, key]))',
    test: { file: 'adapters/secrets.test.ts', name: 'the first key seals, and every key opens' },
  },
  {
    name: 'secrets that open anywhere',
    promise: place,
    file: 'src/core/secret-place.ts',
    find: "JSON.stringify(['header', name.toLowerCase(), destinationId, canonicalUrl(url)])",
    replace: '(void [name, url, canonicalUrl], sharedSecretPlace(destinationId))',
    test: {
      file: 'adapters/secrets.test.ts',
      name: 'what was moved to another place is not opened, nor what says that it was sealed for none',
    },
  },
  {
    name: 'secrets sealed for no place opened',
    promise: place,
    file: 'src/adapters/secrets.ts',
    find: 'if (sealed.bound || !byId.has(sealed.keyId)) return decrypt(sealed, place)',
    replace: 'if (sealed.bound || sealed.keyId) return decrypt(sealed, sealed.bound ? place : null)',
    test: {
      file: 'console/secrets-rotation.test.ts',
      name: 'a secret that a development version sealed for no place is not used, but bound by a rotation',
    },
  },
  {
    name: 'secrets sealed with any key',
    promise: rightKey,
    file: 'src/console/sealing-key.ts',
    find: 'anyKey || used.size === 0) return first',
    replace: 'anyKey || used.size >= 0) return first',
    test: {
      file: 'console/sealing-key.test.ts',
      name: 'a key under which nothing is sealed is refused, for a new destination and for the only one',
    },
  },
  {
    name: 'views that everybody may read',
    promise:
      'Values of secrets and headers can come from files, and nobody else on the machine reads what is stored',
    file: 'src/adapters/store/view-file.ts',
    find: '  fchmodSync(descriptor, 0o600)\n',
    replace: '  void fchmodSync\n',
    test: {
      file: 'adapters/store/view-file.test.ts',
      name: 'views of topics can be read by nobody else, whatever their modes were before',
    },
  },
  {
    name: 'writers that overwrite one another',
    promise: "Several writers at once lose nobody's change",
    file: 'src/core/settings-fold.ts',
    find: "return expectedVersion === this.#version ? 'accepted' : 'stale'",
    replace: "return expectedVersion <= this.#version ? 'accepted' : 'stale'",
    test: {
      file: 'core/settings-fold.test.ts',
      name: 'of two events on one version the first counts, and the second is stale',
    },
  },
  {
    name: 'every fold copied',
    promise: linear,
    file: 'src/core/settings-fold.ts',
    find: 'this.#version++\n    this.#remember(record, appendedAt)',
    replace: 'this.#version++\n    void this.state\n    this.#remember(record, appendedAt)',
    test: {
      file: 'core/settings-fold.test.ts',
      name: 'folding costs the same for each event, however many came before',
    },
  },
  {
    name: 'an event of a newer version passed over',
    promise: held,
    file: 'src/core/settings-replay.ts',
    find: 'this.#held = { offset, reason: entry.reason }\n        return null',
    replace: "this.#held = null\n        return 'stale'",
    test: {
      file: 'adapters/settings-follower.test.ts',
      name: "a newer version's event holds the settings as they were, until it is skipped",
    },
  },
  {
    name: 'garbage that ends the settings',
    promise: garbage,
    file: 'src/adapters/settings-follower.ts',
    find: 'return this.#ignored.add(taken, messageOf(error))',
    replace: 'throw error',
    test: {
      file: 'adapters/settings-follower.test.ts',
      name: 'garbage in the settings log is ignored, with its offset in the log and a count',
    },
  },
  {
    name: 'settings followed only at the start',
    promise: 'A change takes effect in running forwarders within a second',
    file: 'src/forwarder/forwarder.ts',
    find: 'settings.onChange(() => this.#applySettings())',
    replace: '',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a source is called unknown only after catching up with the settings log',
    },
  },
  {
    name: 'a source called unknown without a look at the log’s end',
    promise: 'A source that was made a moment ago is not called unknown',
    file: 'src/forwarder/calls-intake.ts',
    find: "if (pending) return { kind: 'pending', settled: pending }",
    replace: 'void pending',
    test: {
      file: 'forwarder/forwarder.test.ts',
      name: 'a source is called unknown only after catching up with the settings log',
    },
  },
  {
    name: 'a fresh messageId for a membership that is told again',
    promise: told,
    file: 'src/console/computations/sync.ts',
    find: "return hash('sha256', `${audienceId}\\0${userId}\\0${syncId}`, 'base64url')",
    replace:
      "return hash('sha256', `${audienceId}\\0${userId}\\0${syncId}\\0${performance.now()}`, 'base64url')",
    test: {
      file: 'console/computations/sync-crash.test.ts',
      name: 'two syncs in a row that are killed anywhere, with ',
    },
  },
  {
    name: 'a sync that was cut off not finished',
    promise: told,
    file: 'src/console/computations/sync.ts',
    find: 'await sink.writeCalls(memberships.map((membership) => callOf(membership, syncMessageId(membership))))\n    for (',
    replace: 'void callOf\n    for (',
    test: {
      file: 'console/computations/sync-crash.test.ts',
      name: 'two syncs in a row that are killed anywhere, with ',
    },
  },
  {
    name: 'two audiences of one property',
    promise: 'Names in any script have one snake_case form, and two with the same are refused',
    file: 'src/core/settings-computation-rules.ts',
    find: 'if (!other) return []',
    replace: "if (!other || key !== '') return []",
    test: {
      file: 'core/settings-computations.test.ts',
      name: 'audiences and traits share ids and property names',
    },
  },
  {
    name: 'calls of an erased user not dropped',
    promise: erased,
    file: 'src/core/erasures.ts',
    find: 'return erasedAt !== 0 && erasedAt >= appendedAt',
    replace: 'return erasedAt < 0 && erasedAt >= appendedAt',
    test: {
      file: 'pipeline/erasures.test.ts',
      name: 'calls that wait in a tier are dropped as erased, over a restart, and others are not',
    },
  },
  {
    name: 'delete calls erased with the user',
    promise: erased,
    file: 'src/core/erasures.ts',
    find: "if (this.#size === 0 || type === 'delete') return false",
    replace: 'if (this.#size === 0) return false',
    test: { file: 'core/erasures.test.ts', name: 'delete calls are exempt, whoever sent them' },
  },
  {
    name: 'dead letters of an erased user shown',
    promise: "A deleted user's dead letters are neither listed nor shown nor replayed",
    file: 'src/console/dead-letters/erased.ts',
    find: 'if (!known.covers(stored.owner)) yield stored',
    replace: 'if (known) yield stored',
    test: {
      file: 'commands/dead-letters.test.ts',
      name: 'what a deletion request covers is neither listed nor shown',
    },
  },
  {
    name: 'a fresh messageId for a delete call that is sent again',
    promise:
      'Wherever a request is cut off, `resume` leaves nobody out, and a repeated delete call has the same messageId',
    file: 'src/core/deletion.ts',
    find: 'messageId: deleteIdPrefix(requestId) + hash,',
    replace: 'messageId: deleteIdPrefix(requestId) + hash + String(Math.random()),',
    test: {
      file: 'core/deletion.test.ts',
      name: 'the delete call is valid, is the same each time, and renders to the body of the contract',
    },
  },
]
