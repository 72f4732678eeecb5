import type { Mutation } from '../../scripts/mutations/mutation.ts'

const oauth = 'adapters/webhook/oauth.test.ts'
const certificates = 'adapters/webhook/client-certificates.test.ts'

/** Logins of destinations. */
export const login: readonly Mutation[] = [
  {
    id: 'connections-shared-by-client-certificates',
    file: 'src/adapters/webhook/transport.ts',
    find: '...(tls === null ? [] : [digestOf(tls)])',
    replace: '',
    test: {
      file: certificates,
      name: 'connections by one certificate carry no request of another, also while they are free',
    },
  },
  {
    id: 'an-own-ca-in-place-of-the-others',
    file: 'src/adapters/webhook/transport.ts',
    find: 'const added = [ca, own].filter((each) => each !== null)',
    replace: 'const added = [own].filter((each) => each !== null)',
    test: {
      file: certificates,
      name: 'a destination’s own CA is trusted beside the others, and by that destination alone',
    },
  },
  {
    id: 'no-own-ca-behind-a-proxy',
    file: 'src/adapters/webhook/tunnel.ts',
    find: 'this.#options.secureContext ?? this.#settings.secureContext',
    replace: 'this.#settings.secureContext',
    test: {
      file: certificates,
      name: 'a man in the middle gets no request and no client certificate, directly and through a proxy',
    },
  },
  {
    id: 'a-token-for-each-request-that-was-refused',
    file: 'src/adapters/webhook/token-source.ts',
    find: 'if (token !== present) return',
    replace: 'if (token === null) return',
    test: {
      file: oauth,
      name: 'a token that the receiver refuses is replaced once, however many requests carried it',
    },
  },
  {
    id: 'a-token-that-no-receiver-takes-replaced-again-and-again',
    file: 'src/adapters/webhook/token-source.ts',
    find: 'if (isDoubted) return false',
    replace: '',
    test: {
      file: oauth,
      name: 'a second 401 is final, and a receiver that refuses every token has one replaced, not one for each request',
    },
  },
  {
    id: 'a-token-revoked-unused-taken-for-a-receiver-that-takes-none',
    file: 'src/core/login/token-life.ts',
    find: '    problem: null,\n    isDoubted: false,\n  }\n}',
    replace: '    problem: null,\n    isDoubted: true,\n  }\n}',
    test: {
      file: 'adapters/webhook/oauth.test.ts',
      name: 'a token that replaced a refused one and was revoked before it was used is replaced, too',
    },
  },
  {
    id: 'a-token-that-is-renewed-when-it-has-ended',
    file: 'src/core/login/token-life.ts',
    find: 'export const renewedAfter = 0.75',
    replace: 'export const renewedAfter = 1',
    test: {
      file: oauth,
      name: 'the next token is asked for while the present one is used, and no request waits for it',
    },
  },
  {
    id: 'a-token-repeated-by-a-receiver-and-kept',
    file: 'src/adapters/webhook/endpoint.ts',
    find: '[oauth.clientSecret, ...tokens!]',
    replace: '[oauth.clientSecret]',
    test: { file: oauth, name: 'a response that repeats the token or the secret is kept without them' },
  },
  {
    id: 'an-expired-certificate-that-is-set',
    file: 'src/operators/settings/login.ts',
    find: 'validToDate.getTime() <= now)',
    replace: 'validToDate.getTime() <= 0)',
    test: {
      file: 'cli/destinations/login.test.ts',
      name: 'a certificate, key or CA that does not load is refused when it is set, and says why',
    },
  },
  {
    id: 'the-secret-in-the-header-too',
    file: 'src/adapters/webhook/token-source.ts',
    find: '...(!isInForm && {',
    replace: '...({',
    test: {
      file: oauth,
      name: 'a token endpoint that wants the secret in the form gets it there, and in no header',
    },
  },
  {
    id: 'a-batch-halved-for-its-login',
    file: 'src/forwarder/send/endpoint-queue.ts',
    find: ' && !isAboutSender(outcome)',
    replace: '',
    test: {
      file: 'forwarder/send/batches.test.ts',
      name: 'a batch that is refused for its login is refused as a whole: no request is made in halves',
    },
  },
  {
    id: 'a-destination-without-a-token-that-reads-as-well',
    file: 'src/core/statistics/health.ts',
    find: '  isWithoutToken || breaker',
    replace: '  breaker',
    test: { file: 'core/statistics/health.test.ts', name: 'each word is said where its facts hold' },
  },
  {
    id: 'a-proxy-that-is-away-asked-for-each-request',
    file: 'src/adapters/webhook/proxy-breaker.ts',
    find: "if (phases[phase].work !== 'deferred') return",
    replace: 'if (phases[phase]) return',
    test: {
      file: 'adapters/webhook/proxy-breaker.test.ts',
      name: 'requests behind a proxy that is away do not ask it each, and go on once it is back',
    },
  },
  {
    id: 'a-secret-of-a-template-that-is-not-filled-in-before-signing',
    file: 'src/forwarder/plan/destination-runtime.ts',
    find: '    const body = this.#bodyOf(delivery)\n    return {',
    replace: '    const { body } = delivery\n    return {',
    test: {
      file: 'pipeline/security/template-secrets.test.ts',
      name: 'a secret of a template is in what its receiver gets, signed, at retries and replays as it is by then, and nowhere else',
    },
  },
  {
    id: 'what-a-call-holds-taken-for-a-secret',
    file: 'src/core/shape/body-template.ts',
    find: 'return json === null ? null : jsonWithoutMarks(json)',
    replace: 'return json',
    test: {
      file: 'core/shape/secret-holes.test.ts',
      name: 'nothing that a call holds is taken for a secret, in whatever spelling',
    },
  },
  {
    id: 'a-secret-of-a-template-for-any-host',
    file: 'src/core/settings/template-secrets.ts',
    find: 'originsOf(urls).every((origin) => origins.includes(origin))',
    replace: 'originsOf(urls).every(() => origins.length > 0)',
    test: {
      file: 'core/settings/template-secrets.test.ts',
      name: 'another host needs the secret again, and so does the same one without TLS',
    },
  },
  {
    id: 'an-endpoint-without-a-token-taken-for-a-busy-one',
    file: 'src/forwarder/send/endpoint-queue.ts',
    find: 'return isFree && this.loginProblem === null && !this.isLimited(now)',
    replace: 'return isFree && this.#target?.client.login?.isReady !== false && !this.isLimited(now)',
    test: {
      file: 'forwarder/send/head-of-line-monitor.test.ts',
      name: 'an endpoint that blocks work of one whose token was not asked for yet sheds as well',
    },
  },
]
