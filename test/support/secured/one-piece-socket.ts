import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { TLSSocket, type SecureContext } from 'node:tls'

/**
 * The server's side of a TLS connection. All that it writes within one call of `inOnePiece`, TLS's own records included,
 * reaches the client in one piece, as a network may put it: Node would write each record for itself, in several turns.
 */
export class OnePieceSocket extends TLSSocket {
  readonly #wire: Wire

  constructor(socket: Socket, secureContext: SecureContext) {
    const wire = new Wire(socket)
    super(wire, { isServer: true, secureContext })
    this.#wire = wire
  }

  /** `written` is called once it is on its way. */
  inOnePiece(write: () => void, written: () => void = () => {}): void {
    this.#wire.hold()
    write()
    const release = () => {
      if (this.writableLength > 0 && !this.destroyed) {
        setImmediate(release)
        return
      }
      this.#wire.release()
      written()
    }
    setImmediate(release)
  }
}

/** What TLS writes to. */
class Wire extends Duplex {
  readonly #socket: Socket
  #held: Buffer[] | null = null

  constructor(socket: Socket) {
    super()
    this.#socket = socket
    socket.on('data', (data) => this.push(data))
    socket.on('end', () => this.push(null))
    socket.on('error', () => {}).on('close', () => this.destroy())
  }

  hold(): void {
    this.#held ??= []
  }

  release(): void {
    this.#socket.write(Buffer.concat(this.#held ?? []))
    this.#held = null
  }

  override _read(): void {}

  override _write(data: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#held === null) this.#socket.write(data)
    else this.#held.push(data)
    done()
  }

  override _final(done: () => void): void {
    this.#socket.end(done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }
}
