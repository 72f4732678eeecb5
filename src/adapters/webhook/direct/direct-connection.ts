import { Connection } from '../connection.ts'
import type { HeadTemplate } from '../head-template.ts'
import { ResponseReader } from './response-reader.ts'

/**
 * Writes requests and reads responses by itself, since with undici's client, which is made for any request and any
 * response, a delivery takes more CPU (docs/performance.md).
 */
export class DirectConnection extends Connection {
  override readonly readsStream = false
  readonly #reader = new ResponseReader()

  protected override get serverKeepsSeconds(): number | null {
    return this.#reader.keepsSeconds
  }

  protected override get mayEndNow(): boolean {
    return this.#reader.mayEndNow
  }

  override onRead(data: Buffer): void {
    const { attempt } = this
    if (this.hasEnded) return
    if (attempt === null || !this.isWritten) {
      this.endUnasked()
      return
    }
    attempt.onFirstByte()
    let end: number
    try {
      end = this.#reader.read(data, attempt)
    } catch (error) {
      this.end(error as Error)
      return
    }
    // The attempt may have ended within: its response was too long.
    if (end < 0 || this.hasEnded) return
    // What follows a response without having been asked for must not be taken for the next one.
    const isClean = end === data.length && !this.isWriting
    attempt.onEnd(isClean && this.#reader.keepsConnection && this.keptSeconds > 0)
  }

  protected override write(template: HeadTemplate, fields: readonly string[], body: Uint8Array): void {
    if (!this.attempt!.begin()) return
    const socket = this.socket!
    const head = `${template.linesWith(fields)}content-length: ${body.length}\r\n\r\n`
    if (this.isLarge) {
      socket.cork()
      socket.write(head, 'latin1')
      socket.write(body)
      socket.uncork()
      return
    }
    const request = Buffer.allocUnsafe(head.length + body.length)
    request.write(head, 'latin1')
    request.set(body, head.length)
    socket.write(request)
  }
}
