import type { Mutation } from './mutation.ts'

const needed =
  'Every part works with exactly the permissions that `setup --print-acls` prints, and needs each of them'
const waiting =
  'Without one of its permissions a part does not start, and names it; one that is taken away later is waited for'
const named = 'A wrong login, certificate, listener or permission is named as what it is, with what to do'
const tokens = 'Tokens are fetched once for all connections, and anew before they end'

/** Secured clusters. */
export const security: readonly Mutation[] = [
  {
    name: 'a permission printed that nothing needs',
    promise: needed,
    file: 'src/core/permissions.ts',
    find: "...onTopics([settings], ['READ', 'DESCRIBE_CONFIGS']),",
    replace: "...onTopics([settings], ['READ', 'WRITE', 'DESCRIBE_CONFIGS']),",
    test: {
      file: 'pipeline/secured.test.ts',
      name: 'what is printed is what is needed, and nothing else',
      within: 'on a cluster with TLS, logins and permissions',
    },
  },
  {
    name: 'a part that ends when a permission is taken away',
    promise: waiting,
    file: 'src/adapters/kafka/kafka-trouble.ts',
    find: 'return isStarting ? explaining : null',
    replace: 'return explaining',
    test: {
      file: 'pipeline/secured.test.ts',
      name: 'says why, and goes on',
      within: 'on a cluster with TLS, logins and permissions',
    },
  },
  {
    name: 'a start that does not ask what is allowed',
    promise: waiting,
    file: 'src/adapters/kafka/require-permissions.ts',
    find: 'missing = await missingPermissions(kafka, needs)',
    replace: 'missing = (await missingPermissions(kafka, [])).slice(0, 0)',
    test: {
      file: 'adapters/kafka/secured-logins.test.ts',
      name: 'a reader that may not read does not start, be its topic empty, and names all it lacks',
      within: 'on brokers with TLS and logins',
    },
  },
  {
    name: 'a refused token taken for a login',
    promise: named,
    file: 'src/adapters/kafka/oauth-bearer.ts',
    find: "if (answer === '') return",
    replace: 'if (answer !== null) return',
    test: {
      file: 'adapters/kafka/secured-logins.test.ts',
      name: 'is named, with what to do',
      within: 'on brokers with TLS and logins',
    },
  },
  {
    name: 'a connection that ended taken for a refused login',
    promise: named,
    file: 'src/adapters/kafka/kafka-error.ts',
    find: 'if (notTheLogin.test(message)) return',
    replace: 'if (message.length < 0) return',
    test: {
      file: 'adapters/kafka/kafka-error.test.ts',
      name: 'what hides a refusal is not called one, and what is none keeps its message',
    },
  },
  {
    name: 'a token for each connection',
    promise: tokens,
    file: 'src/adapters/kafka/oauth-token.ts',
    find: 'this.#asking ??= this.#ask()',
    replace: 'this.#asking = this.#ask()',
    test: {
      file: 'adapters/kafka/oauth-token.test.ts',
      name: 'a token is asked for by Basic authentication in form encoding, once for all who need it',
    },
  },
]
