// A host that answers some calls twice: the second answer belongs to no request.
import { createServer as createHttpServer, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { createSecureContext } from 'node:tls'
import { OnePieceSocket } from '../../support/secured/one-piece-socket.ts'
import type { ServerCertificate } from '../../support/secured/certificates.ts'

const unasked = 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nunasked'

/**
 * How long before it writes a request a sender must have been able to see what came, in ms. It looks shortly before, but its
 * process may be held up between the two. Times the run's patience.
 */
const seenMs = 100

/** An answer that comes some time after the one before it. Times are epoch ms. */
interface Later {
  timer: NodeJS.Timeout
  begun: boolean
  /** When all of it had left this process; null before. */
  leftAt: number | null
}

const laterOf = new WeakMap<Socket, Later>()
/** On these a request has crossed an answer: nobody can tell which answer is whose any more. */
const confused = new WeakSet<Socket>()

/** HTTP over TLS, whose answers can be followed by bytes that share their TCP segment. */
export function createUnaskedServer(certificate: ServerCertificate, onRequest: RequestListener): Server {
  const secureContext = createSecureContext(certificate)
  const http = createHttpServer(onRequest)
  http.keepAliveTimeout = 60_000
  return createTcpServer((socket) => {
    const secured = new OnePieceSocket(socket, secureContext)
    secured.on('error', () => socket.destroy())
    secured.once('secure', () => void http.emit('connection', secured))
  })
}

/** The answer, and one more: two TLS records in one TCP segment. */
export function answerTwice(response: ServerResponse): void {
  const socket = response.socket as OnePieceSocket
  socket.inOnePiece(() => {
    response.end()
    socket.write(unasked)
  })
}

/** The answer, and after `ms` one more, unless another request has come until then. */
export function answerAgainAfter(response: ServerResponse, ms: number): void {
  const socket = response.socket!
  response.end()
  const later: Later = {
    begun: false,
    leftAt: null,
    timer: setTimeout(() => {
      if (socket.destroyed) return
      later.begun = true
      socket.write(unasked, () => (later.leftAt = Date.now()))
    }, ms),
  }
  laterOf.set(socket, later)
}

/**
 * A request has come over the connection, written at `sentAt`. True if an answer was on its way to its sender that this one
 * had no time to see before. So it is for what comes behind it: its sender may have taken the first for answered.
 */
export function crossesAnswer(socket: Socket, sentAt: number, patience: number): boolean {
  const later = laterOf.get(socket)
  if (!later) return confused.has(socket)
  clearTimeout(later.timer)
  laterOf.delete(socket)
  const crosses = later.begun && (later.leftAt === null || later.leftAt > sentAt - seenMs * patience)
  if (crosses) confused.add(socket)
  return crosses
}
