import { producerIdAt, headBytes, transactional, control } from './batch-layout.ts'
import { Cursor } from './cursor.ts'

/** In the key of a control record, behind its version. */
const abort = 0

/** Transactions that were aborted, as a fetch names them: whose, and from which offset on. */
export interface AbortedTransaction {
  producerId: string
  firstOffset: string
}

/** Which batches belong to transactions that were aborted, in the order of their offsets. */
export class Transactions {
  /** Not begun yet, the first one last. */
  readonly #next: AbortedTransaction[]
  readonly #producers = new Set<string>()

  constructor(aborted: readonly AbortedTransaction[]) {
    this.#next = aborted.toSorted((a, b) => Number(b.firstOffset) - Number(a.firstOffset))
  }

  /** Whether no reader gets the batch: its transaction was aborted, or it is a control batch. */
  hide(bytes: Buffer, at: number, attributes: number, lastOffset: number): boolean {
    const isControl = (attributes & control) !== 0
    if (this.#next.length === 0 && this.#producers.size === 0) return isControl
    while (this.#next.length > 0 && Number(this.#next.at(-1)!.firstOffset) <= lastOffset)
      this.#producers.add(this.#next.pop()!.producerId)
    const producer = String(bytes.readBigInt64BE(at + producerIdAt))
    if (isControl) {
      if (controlType(bytes, at) === abort) this.#producers.delete(producer)
      return true
    }
    return (attributes & transactional) !== 0 && this.#producers.has(producer)
  }
}

/** A control batch has one record, which is never compressed. */
function controlType(bytes: Buffer, at: number): number | null {
  const cursor = new Cursor(bytes, at + headBytes)
  cursor.varint()
  cursor.at++
  cursor.varint()
  cursor.varint()
  const key = cursor.bytes()
  return key && key.length >= 4 ? key.readInt16BE(2) : null
}
