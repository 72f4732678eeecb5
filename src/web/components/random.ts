// Works without TLS, where browsers have no `randomUUID`.

const randomBytes = (count: number): Uint8Array => crypto.getRandomValues(new Uint8Array(count))

/** For an Idempotency-Key. */
export const randomKey = (): string =>
  [...randomBytes(16)].map((byte) => byte.toString(16).padStart(2, '0')).join('')

/** A shared secret: 32 bytes, in 43 letters that no shell and no file minds. */
export const newSecret = (): string =>
  btoa(String.fromCharCode(...randomBytes(32)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
