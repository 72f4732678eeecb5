import type { Mutation } from '../../scripts/mutations/mutation.ts'

/** Secured clusters. */
export const security: readonly Mutation[] = [
  {
    id: 'a-permission-printed-that-nothing-needs',
    file: 'src/core/permissions.ts',
    find: "...permissionsOn('topic', [settings, suppressions], ['READ', 'DESCRIBE_CONFIGS']),",
    replace: "...permissionsOn('topic', [settings, suppressions], ['READ', 'WRITE', 'DESCRIBE_CONFIGS']),",
    test: {
      file: 'pipeline/security/secured.test.ts',
      name: 'exactly the necessary permissions are printed',
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
      name: 'waits, reports why, and continues when it is granted again',
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
      name: 'a reader without read permission does not start, even if its topic is empty, and names all permissions that it lacks',
      within: 'on brokers with TLS and logins',
    },
  },
  {
    id: 'a-refused-token-taken-for-a-login',
    file: 'src/adapters/kafka/secure/oauth-token.ts',
    find: "if (answer === '') return",
    replace: 'if (answer !== null) return',
    test: {
      file: 'adapters/kafka/secure/logins.test.ts',
      name: 'the error says what to do: ',
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
      name: 'failures that are not refusals are not reported as refusals, and other errors keep their message',
    },
  },
  {
    id: 'a-token-for-each-connection',
    file: 'src/adapters/kafka/secure/oauth-token.ts',
    find: 'this.#asking ??= this.#ask()',
    replace: 'this.#asking = this.#ask()',
    test: {
      file: 'adapters/kafka/secure/oauth-token.test.ts',
      name: 'a token is requested with form-encoded Basic authentication, once for all callers',
    },
  },
  {
    id: 'new-secrets-sent-to-an-old-url',
    file: 'src/forwarder/destination-limits.ts',
    find: 'if (share !== null) this.#adjust(share, now)\n  }',
    replace: 'if (share !== null) this.shareIs(share, now)\n  }',
    test: {
      file: 'forwarder/plan/routing.test.ts',
      name: 'what waits when its destination changes goes out by all of its new settings, or not at all',
    },
  },
  {
    id: 'bodies-unpacked-all-at-once',
    file: 'src/adapters/http/body.ts',
    find: 'new TurnsBySender(16)',
    replace: 'new TurnsBySender(16_000)',
    test: {
      file: 'collector/request-budget.test.ts',
      name: 'of many small bodies that unpack to large ones, a few at a time hold memory that is not counted yet',
    },
  },
]
