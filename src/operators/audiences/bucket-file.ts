// Users in buckets: a list is compared with the view of members bucket by bucket, in memory.
import { randomBytes } from 'node:crypto'
import { closeSync, mkdirSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { PostriderError, messageOf } from '../../errors.ts'

/** How many buckets users are spread over: each is read as a whole, so it is what a list takes in memory. */
export const buckets = 256

/** Where a user is, in lists and in the view (whose form changes with it): FNV-1a. */
export function bucketOf(userId: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < userId.length; at++) hash = Math.imul(hash ^ userId.charCodeAt(at), 0x01000193)
  return (hash ^ (hash >>> 8) ^ (hash >>> 16)) & (buckets - 1)
}

/** Of one bucket, what is held in memory until it is written, in bytes. */
const blockBytes = 16_384
const numberBytes = 4
const lineFeed = 10

/** Entries on disk, one a line, and then their numbers. */
interface Block {
  position: number
  textBytes: number
  entries: number
}

interface Bucket {
  /** Each entry with a line feed behind it: no text of its own is kept, so a collection finds nothing to move. */
  text: Buffer
  bytes: number
  numbers: number[]
  blocks: Block[]
}

/**
 * Entries, which are texts of one line with a number each, by bucket; in order within a bucket. They lie in a file
 * without a name, which ends with the process, or in memory while they are few. Throws `local`.
 */
export class BucketFile {
  readonly #folder: string
  readonly #buckets = new Map<number, Bucket>()
  #file: number | null = null
  #end = 0

  constructor(folder: string) {
    this.#folder = folder
  }

  add(bucket: number, entry: string, number: number): void {
    const into = this.#bucket(bucket)
    if (into.bytes + entry.length * 3 >= into.text.length) this.#makeRoom(into, entry)
    into.bytes += into.text.write(entry, into.bytes)
    into.text[into.bytes++] = lineFeed
    into.numbers.push(number)
  }

  read(bucket: number): string[] {
    const found = this.#buckets.get(bucket)
    if (found === undefined) return []
    const written = found.blocks.map(({ position, textBytes }) => this.#read(position, textBytes))
    const lines = Buffer.concat([...written, found.text.subarray(0, found.bytes)])
      .toString('utf8')
      .split('\n')
    lines.pop()
    return lines
  }

  /** Of the entries that `read` gives. */
  numbers(bucket: number): number[] {
    const { blocks, numbers } = this.#bucket(bucket)
    const written = blocks.flatMap(({ position, textBytes, entries }) => {
      const bytes = this.#read(position + textBytes, entries * numberBytes)
      return Array.from({ length: entries }, (_, index) => bytes.readUInt32LE(index * numberBytes))
    })
    return [...written, ...numbers]
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
  }

  #bucket(bucket: number): Bucket {
    let found = this.#buckets.get(bucket)
    if (found === undefined) {
      found = { text: Buffer.allocUnsafe(256), bytes: 0, numbers: [], blocks: [] }
      this.#buckets.set(bucket, found)
    }
    return found
  }

  /** Short lists get by with short buffers. */
  #makeRoom(bucket: Bucket, entry: string): void {
    if (bucket.bytes >= blockBytes / 2) this.#write(bucket)
    const needed = bucket.bytes + entry.length * 3 + 1
    if (needed <= bucket.text.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, Math.min(bucket.text.length * 4, blockBytes)))
    bucket.text.copy(larger, 0, 0, bucket.bytes)
    bucket.text = larger
  }

  #write(bucket: Bucket): void {
    const { text, bytes: textBytes, numbers } = bucket
    const block = Buffer.allocUnsafe(textBytes + numbers.length * numberBytes)
    text.copy(block, 0, 0, textBytes)
    for (let index = 0; index < numbers.length; index++)
      block.writeUInt32LE(numbers[index]!, textBytes + index * numberBytes)
    this.#do((file) => {
      for (let written = 0; written < block.length;)
        written += writeSync(file, block, written, block.length - written, this.#end + written)
    })
    bucket.blocks.push({ position: this.#end, textBytes, entries: numbers.length })
    this.#end += block.length
    bucket.bytes = 0
    bucket.numbers = []
  }

  #read(position: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length)
    this.#do((file) => {
      for (let read = 0; read < length;) {
        const count = readSync(file, bytes, read, length - read, position + read)
        if (count === 0) throw new Error('it ends too early')
        read += count
      }
    })
    return bytes
  }

  #do(work: (file: number) => void): void {
    try {
      work((this.#file ??= unnamedFile(this.#folder)))
    } catch (error) {
      throw new PostriderError(
        'local',
        `cannot keep a list in ${this.#folder}: ${messageOf(error)}. STORE_PATH names another folder`,
        { cause: error },
      )
    }
  }
}

function unnamedFile(folder: string): number {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const name = join(folder, `list-${randomBytes(6).toString('hex')}`)
  const file = openSync(name, 'wx+', 0o600)
  unlinkSync(name)
  return file
}
