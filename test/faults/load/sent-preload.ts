// Loaded before a forwarder, ahead of what shifts its clock: each request says in a header when its bytes were
// written. A receiver that is busy reads what came long ago, and whoever sent it may have given it up since.
import { Socket } from 'node:net'
import { sentHeader } from './sent-header.ts'

const RealDate = Date
const write = Socket.prototype.write
const begin = 'POST '

/** A request's head comes alone as a string, or with its body in one buffer. */
function stamped(data: unknown): unknown {
  const isText = typeof data === 'string'
  if (!isText && !Buffer.isBuffer(data)) return data
  if (isText ? !data.startsWith(begin) : data.toString('latin1', 0, begin.length) !== begin) return data
  const text = isText ? data : data.toString('latin1')
  const end = text.indexOf('\r\n') + 2
  const all = `${text.slice(0, end)}${sentHeader}: ${RealDate.now()}/${process.pid}\r\n${text.slice(end)}`
  return isText ? all : Buffer.from(all, 'latin1')
}

Socket.prototype.write = function (this: Socket, data: unknown, ...rest: unknown[]): boolean {
  return (write as (...args: unknown[]) => boolean).call(this, stamped(data), ...rest)
}
