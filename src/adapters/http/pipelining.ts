import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** Requests of one connection that wait for the answer before them. */
const maxWaiting = 32

/** The requests of a connection. */
interface Turns {
  /** One is in progress. */
  isBusy: boolean
  /** They begin in their order. */
  readonly waiting: ((isLast: boolean) => void)[]
  /** More came than may wait: the connection ends with the answers to those that do. */
  isOver: boolean
}

/**
 * Lets a connection have one request in progress; what it sends ahead (pipelining) waits, and is not read before its
 * turn. Node begins every request as soon as it has parsed it, so that a few connections would get nearly all of a
 * process. Where more than `maxWaiting` came in one piece, the connection ends with the answers to those: its client has
 * to send the rest again (RFC 9112, 9.3.2). To be called before any other hook is added.
 */
export function oneRequestAtATime(app: FastifyInstance): void {
  const connections = new WeakMap<Socket, Turns>()
  app.addHook('onRequest', ({ raw: { socket } }, { raw: response }, done) => {
    const turns = connections.get(socket) ?? turnsOf(socket)
    const begin = (isLast: boolean) => {
      if (isLast) response.setHeader('Connection', 'close')
      response.once('close', () => {
        // Not at once: all that wait could follow within one turn of the event loop, before any other connection.
        if (turns.waiting.length > 0) setImmediate(nextTurn, socket, turns)
        else turns.isBusy = false
      })
      done()
    }
    if (!turns.isBusy) {
      turns.isBusy = true
      return begin(false)
    }
    turns.isOver ||= turns.waiting.length === maxWaiting
    if (turns.isOver) return
    turns.waiting.push(begin)
    if (turns.waiting.length === 1) socket.pause()
  })

  function turnsOf(socket: Socket): Turns {
    const turns: Turns = { isBusy: false, waiting: [], isOver: false }
    connections.set(socket, turns)
    // Node's parser goes on to the end of what was read, and resumes the socket after each request.
    socket.on('resume', () => {
      if (turns.waiting.length > 0 || turns.isOver) socket.pause()
    })
    return turns
  }
}

/** Begins the next one. */
function nextTurn(socket: Socket, turns: Turns): void {
  if (socket.destroyed) return
  const begin = turns.waiting.shift()!
  const isLast = turns.waiting.length === 0
  // The rest of its body, and what follows it, may still be on the way.
  if (isLast && !turns.isOver) socket.resume()
  begin(isLast && turns.isOver)
}
