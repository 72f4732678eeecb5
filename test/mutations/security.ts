import type { Mutation } from '../../scripts/mutations/mutation.ts'

/** Secured clusters. */
export const security: readonly Mutation[] = [
  {
    id: 'a-permission-printed-that-nothing-needs',
    file: 'src/core/permissions.ts',
    find: "...on('topic', [settings], ['READ', 'DESCRIBE_CONFIGS']),",
    replace: "...on('topic', [settings], ['READ', 'WRITE', 'DESCRIBE_CONFIGS']),",
    test: {
      file: 'pipeline/security/secured.test.ts',
      name: 'what is printed is what is needed, and nothing else',
      within: 'on a cluster with TLS, logins and permissions',
    },
  },
  {
    id: 'a-part-that-ends-when-a-permission-is-taken-away',
    file: 'src/adapters/kafka/kafka-trouble.ts',
    find: 'return isStarting ? explaining : null',
    replace: 'return explaining',
    test: {
      file: 'pipeline/security/secured.test.ts',
      name: 'waits, says why, and goes on',
      within: 'on a cluster with TLS, logins and permissions',
    },
  },
  {
    id: 'a-start-that-does-not-ask-what-is-allowed',
    file: 'src/adapters/kafka/secure/require-permissions.ts',
    find: 'missing = await missingPermissions(kafka, needs)',
    replace: 'missing = (await missingPermissions(kafka, [])).slice(0, 0)',
    test: {
      file: 'adapters/kafka/secure/logins.test.ts',
      name: 'a reader that may not read does not start, be its topic empty, and names all it lacks',
      within: 'on brokers with TLS and logins',
    },
  },
  {
    id: 'a-refused-token-taken-for-a-login',
    file: 'src/adapters/kafka/secure/oauth-bearer.ts',
    find: "if (answer === '') return",
    replace: 'if (answer !== null) return',
    test: {
      file: 'adapters/kafka/secure/logins.test.ts',
      name: 'is named, with what to do',
      within: 'on brokers with TLS and logins',
    },
  },
  {
    id: 'a-connection-that-ended-taken-for-a-refused-login',
    file: 'src/adapters/kafka/kafka-error.ts',
    find: 'if (notTheLogin.test(message)) return',
    replace: 'if (message.length < 0) return',
    test: {
      file: 'adapters/kafka/kafka-error.test.ts',
      name: 'what hides a refusal is not called one, and what is none keeps its message',
    },
  },
  {
    id: 'a-token-for-each-connection',
    file: 'src/adapters/kafka/secure/oauth-token.ts',
    find: 'this.#asking ??= this.#ask()',
    replace: 'this.#asking = this.#ask()',
    test: {
      file: 'adapters/kafka/secure/oauth-token.test.ts',
      name: 'a token is asked for by Basic authentication in form encoding, once for all callers',
    },
  },
]
