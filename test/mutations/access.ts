import type { Mutation } from '../../scripts/mutations/mutation.ts'

const consoleAccess = 'adapters/http/console-access.test.ts'
const companyLogin = 'adapters/http/company-login.test.ts'
const limited = 'console/limited.test.ts'
const noneOfAnothers = 'no operation shows a limited token anything of another’s, or does anything to it'
const rolesApi = 'console/roles-api.test.ts'
const who = 'each change has its actor: the token, also where the work is done deep down'
const whose = 'a reader sees no contents and changes nothing, and an operator changes no settings'

/** Who may do what, who did it, and files that are applied. */
export const access: readonly Mutation[] = [
  {
    id: 'a-new-destination-tested-by-an-operator',
    file: 'src/operators/destinations/operations.ts',
    find: "command: null,\n    role: 'admin',\n    summary: 'Send one sample call to each URL of a destination that is not created yet',",
    replace:
      "command: null,\n    role: 'operator',\n    summary: 'Send one sample call to each URL of a destination that is not created yet',",
    test: { file: rolesApi, name: whose },
  },
  {
    id: 'a-deletion-by-nobody',
    file: 'src/operators/deletions/request.ts',
    find: 'actor: ports.actor(),',
    replace: 'actor: null,',
    test: {
      file: 'console/deletions-api.test.ts',
      name: 'a deletion over HTTP reaches the receivers of every affected source, and its progress can be queried',
    },
  },
  {
    id: 'a-role-not-asked-for',
    file: 'src/console/access.ts',
    find: 'if (operation && !includesRole(caller.role, roleOf(operation, query)))',
    replace: "if (operation && !includesRole(caller.role, roleOf({ role: 'reader' })))",
    test: { file: rolesApi, name: whose },
  },
  {
    id: 'decided-by-the-text-of-the-path',
    file: 'src/console/server.ts',
    find: 'if (operation === null && isOpen(request)) return',
    replace: 'if (isPagePath(pathOf(request)) || (operation === null && isOpen(request))) return',
    test: {
      file: consoleAccess,
      name: 'a wrong token is logged and slowed down, however the path is written',
    },
  },
  {
    id: 'not-checked-again-before-it-is-done',
    file: 'src/console/request.ts',
    find: 'const { caller, answer: refused } = access.admit(operation, request)\n  if (refused) return send(reply, refused)',
    replace: "const caller = { name: 'nobody', role: 'admin' as const }",
    test: {
      file: consoleAccess,
      name: 'a token that is revoked while its request waits for the settings does nothing any more',
    },
  },
  {
    id: 'targets-that-are-no-paths',
    file: 'src/console/server.ts',
    find: "if (!request.url.startsWith('/')) return refuse(reply, noPath)",
    replace: '',
    test: { file: consoleAccess, name: 'a target that is no path is refused, and says what to send' },
  },
  {
    id: 'any-number-of-slow-requests',
    file: 'src/console/request.ts',
    find: 'if (running >= limit.max)',
    replace: 'if (running < 0)',
    test: {
      file: 'adapters/http/console-attacks.test.ts',
      name: 'of requests that share a limit one too many is refused at once, and gets its turn when another has ended',
    },
  },
  {
    id: 'streams-that-nobody-reads',
    file: 'src/console/request.ts',
    find: 'isStalled = performance.now() - taken.at >= idleMs',
    replace: 'isStalled = taken.at < 0',
    test: {
      file: 'adapters/http/console-server.test.ts',
      name: 'a stream that nobody reads is ended in time, so that its place is free; one that is read goes on',
    },
  },
  {
    id: 'queries-of-urls-shown-to-a-reader',
    file: 'src/operators/limited.ts',
    find: 'settingsFor(role, services.settings)',
    replace: "settingsFor('admin', services.settings)",
    test: {
      file: 'console/shown-urls.test.ts',
      name: 'no answer that a reader gets has what stands in the query of a URL or in a body, whatever it asks for',
    },
  },
  {
    id: 'a-role-of-a-parameter-not-asked-for',
    file: 'src/console/access.ts',
    find: 'roleOf(operation, query)))',
    replace: 'roleOf(operation)))',
    test: {
      file: consoleAccess,
      name: 'a parameter that takes a higher role takes it, however it is written',
    },
  },
  {
    id: 'an-index-without-a-bound',
    file: 'src/operators/why/message-index.ts',
    find: 'if (wanted * each <= maxBytes) return',
    replace: 'if (wanted * each > 0) return',
    test: {
      file: 'adapters/store/message-index.test.ts',
      name: 'the index of messages keeps the newest within its bound, and says since when',
    },
  },
  {
    id: 'login-links-that-never-expire',
    file: 'src/console/page/session.ts',
    find: 'if (this.#isUsed || now >= this.#expiresAt) return false',
    replace: 'if (this.#isUsed || now < 0) return false',
    test: { file: 'console/session-api.test.ts', name: 'a login link works for a quarter of an hour' },
  },
  {
    id: 'contents-shown-to-a-reader',
    file: 'src/operators/why/describe.ts',
    find: '...(hidesContents && noContents),',
    replace: '...(hidesContents && { name: noContents.name }),',
    test: { file: rolesApi, name: whose },
  },
  {
    id: 'an-operation-open-to-all-unless-it-says-otherwise',
    file: 'src/operators/operation.ts',
    find: "{ role = 'admin', queryRoles = {} }: Pick<Operation,",
    replace: "{ role = 'reader', queryRoles = {} }: Pick<Operation,",
    test: {
      file: rolesApi,
      name: 'an operation that declares no role takes an admin, and the document names the role of each',
    },
  },
  {
    id: 'revoked-tokens-that-work',
    file: 'src/adapters/http/authorization.ts',
    find: 'if (revokedAt !== null || kept.length !== hash.length) continue',
    replace: 'if (kept.length !== hash.length || revokedAt === -1) continue',
    test: {
      file: rolesApi,
      name: 'a revoked token is refused at every console, and a token shows up nowhere after its creation',
    },
  },
  {
    id: 'changes-without-their-actor',
    file: 'src/console/request.ts',
    find: 'actingAs(caller.name, async () =>',
    replace: "actingAs('', async () =>",
    test: { file: rolesApi, name: who },
  },
  {
    id: 'events-of-earlier-versions-not-read',
    file: 'src/adapters/schema-registry/schemas.ts',
    find: 'if (last.default === undefined) break',
    replace: 'if (last.default !== undefined) break',
    test: {
      file: 'adapters/folded-log/settings-log.test.ts',
      name: 'each event names its actor, behind what readers of earlier versions read; their events count without one',
    },
  },
  {
    id: 'half-of-an-impossible-event-kept',
    file: 'src/core/settings/fold.ts',
    find: 'for (const revert of undo.reverse()) revert()',
    replace: 'undo.reverse()',
    test: {
      file: 'core/settings/fold.test.ts',
      name: 'an event of several counts as a whole, or not at all where one part is impossible',
    },
  },
  {
    id: 'an-apply-decided-again-on-what-nobody-saw',
    file: 'src/adapters/folded-log/settings-log.ts',
    find: 'if (expectedVersion !== undefined && expectedVersion !== state.version)',
    replace: 'if (expectedVersion !== undefined && expectedVersion > state.version)',
    test: {
      file: 'pipeline/settings/settings-file.test.ts',
      name: 'of two applies at once one counts as a whole, and the other is told who was first',
    },
  },
  {
    id: 'secrets-of-a-file-written-again',
    file: 'src/core/apply/wanted-settings.ts',
    find: 'if (given) return active.find((sealed) => given.equals(sealed)) ?? given.make()',
    replace: 'if (given) return given.make()',
    test: {
      file: 'console/settings-file.test.ts',
      name: 'a secret is written only where its text is another one; a file can rotate it',
    },
  },
  {
    id: 'secrets-taken-from-a-file',
    file: 'src/operators/settings/file-schema.ts',
    find: '/^\\$\\{[A-Za-z_]\\w{0,127}\\}$/,',
    replace: '/^[^]*$/,',
    test: {
      file: 'console/settings-file.test.ts',
      name: 'secrets do not stand in a file, and no fault repeats one',
    },
  },
  {
    id: 'events-counted-by-each-console',
    file: 'src/operators/why/trace-database.ts',
    find: 'this.catalogue.take(fresh.flatMap(',
    replace: 'this.catalogue.take(entries.flatMap(',
    test: {
      file: 'console/events-api.test.ts',
      name: 'a catalogue that was deleted is the same again, and two consoles on one file count each call once',
    },
  },
  {
    id: 'calls-that-were-never-counted-forgotten',
    file: 'src/operators/why/message-index.ts',
    find: 'if (lost.delete(place.partition)) this.#database.catalogue.missed(timestamp)',
    replace: 'lost.delete(place.partition)',
    test: {
      file: 'console/events-api.test.ts',
      name: 'calls that retention took before they were counted move the time since when all are',
    },
  },
  {
    id: 'calls-beyond-the-index-taken-for-counted',
    file: 'src/operators/why/trace-database.ts',
    find: 'this.catalogue.missed(since)',
    replace: 'void since',
    test: {
      file: 'adapters/store/message-index.test.ts',
      name: 'the index of messages keeps the newest within its bound, and says since when',
    },
  },
  {
    id: 'dropped-paths-in-documents-of-webhooks',
    file: 'src/core/catalogue/json-schema.ts',
    find: 'return dropped ? withoutDropped(tree, dropped.tree) : tree',
    replace: 'return tree',
    test: {
      file: 'core/catalogue/event-schemas.test.ts',
      name: 'an AsyncAPI document is valid, and so is the body of each call by the message of its event',
    },
  },
  {
    id: 'keys-that-are-data-kept',
    file: 'src/core/catalogue/call-shape.ts',
    find: 'isData(key) ? null : key], value)',
    replace: 'key], value)',
    test: {
      file: 'core/catalogue/call-shape.test.ts',
      name: 'of a key that is data, such as an address, a number or an id, nothing is kept',
    },
  },
  {
    id: 'a-login-that-leads-anywhere',
    file: 'src/console/page/company-login.ts',
    find: 'return url.pathname + url.search',
    replace: 'return given as string',
    test: { file: companyLogin, name: 'a login leads to a page of this console, and to nowhere else' },
  },
  {
    id: 'a-login-begun-elsewhere',
    file: 'src/console/page/company-login.ts',
    find: "if (isForeign('GET', request.headers)) return leave(reply, '/')",
    replace: '',
    test: { file: companyLogin, name: 'another site cannot begin a login' },
  },
  {
    id: 'an-address-that-is-not-verified',
    file: 'src/core/access/company-roles.ts',
    find: "hasForm(email) && isVerified !== false && isVerified !== 'false'",
    replace: 'hasForm(email)',
    test: { file: companyLogin, name: 'an address that the issuer has not verified names nobody' },
  },
  {
    id: 'counts-of-anothers',
    file: 'src/operators/limited.ts',
    find: 'new Map([...store.sums(kind, period)].filter(([id]) => sees(id)))',
    replace: 'store.sums(kind, period)',
    test: { file: limited, name: noneOfAnothers },
  },
  {
    id: 'one-count-for-whatever-is-seen',
    file: 'src/operators/limited.ts',
    find: 'waiting.sure(`${only.toSorted().join()} ${of}`, count, moves)',
    replace: 'waiting.sure(of, count, moves)',
    test: {
      file: limited,
      name: 'what is unaccounted becomes sure for one token and for a limited one that ask in turn',
    },
  },
  {
    id: 'what-was-held-of-anothers',
    file: 'src/operators/limited.ts',
    find: 'held: tally.held.filter(({ destinationId }) => sees(destinationId)),',
    replace: '',
    test: { file: limited, name: noneOfAnothers },
  },
  {
    id: 'a-pause-of-anothers',
    file: 'src/operators/limited.ts',
    find: 'if (!limitedState(only, settings.state).destinations.has(command.id))',
    replace: 'if (false)',
    test: { file: limited, name: noneOfAnothers },
  },
  {
    id: 'the-whole-for-a-limited-token',
    file: 'src/console/access.ts',
    find: "caller.only !== null && operation.forLimited !== 'part'",
    replace: "caller.only !== null && operation.forLimited === 'nothing' && caller.role === 'reader'",
    test: {
      file: limited,
      name: 'what is about the whole deployment is refused to a limited token, with a clear message',
    },
  },
  {
    id: 'a-new-token-refused-by-a-console-that-is-behind',
    file: 'src/console/access.ts',
    find: 'return hasLooked ? this.admit(operation, request) : decision',
    replace: 'void hasLooked\n    return decision',
    test: {
      file: 'adapters/http/refused-tokens.test.ts',
      name: 'a token that was made a moment ago at another console is looked for before it is refused, and so is its session',
    },
  },
]
