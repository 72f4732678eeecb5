import type { Mutation } from '../../scripts/mutations/mutation.ts'

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
    id: 'an-expired-certificate-that-is-set',
    file: 'src/operators/settings/login.ts',
    find: 'validToDate.getTime() <= now)',
    replace: 'validToDate.getTime() <= 0)',
    test: {
      file: 'cli/destinations/login.test.ts',
      name: 'a certificate, key or CA that does not load is refused when it is set, and says why',
    },
  },
]
