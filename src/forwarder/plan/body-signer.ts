import { createHash, createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto'

/** Of SHA-1, in bytes: RFC 3174. */
const [blockBytes, digestBytes] = [64, 20]
/** Longer bodies are not copied. */
const maxCopiedBytes = 16 * 1_024

/** One for all: a body is copied behind the key's block and hashed before anything else happens. */
const inner = Buffer.alloc(blockBytes + maxCopiedBytes)
const outer = Buffer.alloc(blockBytes + digestBytes)

/**
 * The HMAC-SHA1 of bodies with one secret. HMAC is a hash of a hash (RFC 2104), and Node's one-shot hash takes half as
 * long as its Hmac, which makes an object outside of the heap for every body.
 */
export class BodySigner {
  readonly #secret: string
  /** Made for the first long body: most secrets never sign one, and it takes as long as all else here. */
  #key: KeyObject | null = null
  /** Made for the first body: most destinations get none for long. */
  #blocks: Blocks | null = null

  constructor(secret: string) {
    this.#secret = secret
  }

  /** In lowercase hex. */
  sign(body: Uint8Array): string {
    if (body.length > maxCopiedBytes) {
      this.#key ??= createSecretKey(this.#secret, 'utf8')
      return createHmac('sha1', this.#key).update(body).digest('hex')
    }
    const blocks = (this.#blocks ??= blocksOf(this.#secret))
    inner.set(blocks.inner)
    inner.set(body, blockBytes)
    // As text, for a digest in a Buffer takes as long as the hash.
    const digest = hash('sha1', inner.subarray(0, blockBytes + body.length), 'binary')
    outer.set(blocks.outer)
    outer.write(digest, blockBytes, 'latin1')
    return hash('sha1', outer, 'hex')
  }
}

/** The key's block as RFC 2104 pads it, for the hash of the body and for the hash of that. */
interface Blocks {
  inner: Uint8Array
  outer: Uint8Array
}

function blocksOf(secret: string): Blocks {
  const bytes = Buffer.from(secret, 'utf8')
  const block = new Uint8Array(blockBytes)
  block.set(bytes.length > blockBytes ? createHash('sha1').update(bytes).digest() : bytes)
  return { inner: block.map((byte) => byte ^ 0x36), outer: block.map((byte) => byte ^ 0x5c) }
}
