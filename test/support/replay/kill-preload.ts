// Loaded before a console: it kills its process by SIGKILL at the nth request of a kind to Kafka, before the request is
// sent or once it is. KILL_AT is `<kind> <n> <before|after>`.
import { Socket } from 'node:net'

/** Kinds of requests, by their number in Kafka's protocol and the name that their bytes hold. */
const kinds: Record<string, { apiKey: number; name: string }> = {
  settings: { apiKey: 0, name: 'webhooks.settings' },
  append: { apiKey: 0, name: 'webhooks.retry.replay' },
  commit: { apiKey: 8, name: '.replay.' },
}

const [kind, count, when] = process.env.KILL_AT!.split(' ')
const { apiKey, name } = kinds[kind!]!
let left = Number(count)

const isOurs = (bytes: unknown): boolean =>
  bytes instanceof Uint8Array &&
  bytes.length > 6 &&
  Buffer.from(bytes.buffer, bytes.byteOffset).readInt16BE(4) === apiKey &&
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(name)

const kill = () => void process.kill(process.pid, 'SIGKILL')

const write = Socket.prototype.write as (this: Socket, ...given: unknown[]) => boolean
Socket.prototype.write = function (this: Socket, ...given: unknown[]): boolean {
  if (!isOurs(given[0]) || --left !== 0) return write.call(this, ...given)
  if (when === 'before') kill()
  return write.call(this, given[0], kill)
}
