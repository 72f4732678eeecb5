// How the console takes bodies: JSON is parsed, lists are streams, and neither may take for ever.
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { RequestRefused } from '../operators/check.ts'
import type { Operation } from '../operators/operation.ts'
import { SenderPatience } from '../adapters/http/sender-patience.ts'

/** JSON bodies; lists are streamed, and have no limit. */
export const maxBodyBytes = 8 << 20

const streamTypes = ['application/x-ndjson', 'text/plain']

/** JSON is parsed; lists stay streams; everything else is refused with 415. */
export function takeBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  const parse = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, text, done) => {
    // Some clients name a type where there is no body.
    if (text === '') done(null, undefined)
    else parse(request, text as string, done)
  })
  app.addContentTypeParser(streamTypes, (_request, payload, done) => done(null, payload))
}

export function checkContent(
  operation: Operation,
  contentType: string | null,
  encoding: string | undefined,
): void {
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity')
    throw new RequestRefused('unsupported_media_type', 'Content-Encoding is not taken here: send it as it is')
  const { streams } = operation
  const isStream = contentType !== null && streamTypes.includes(contentType)
  if (streams ? contentType !== null && contentType in streams : !isStream) return
  const takes = streams ? Object.keys(streams).join(' or ') : 'application/json'
  throw new RequestRefused('unsupported_media_type', `the Content-Type must be ${takes}`)
}

/** Whether an unsafe request says that it sends JSON, which no form of another site can. */
export const saysJson = (method: string, headers: IncomingHttpHeaders): boolean =>
  method === 'GET' ||
  method === 'HEAD' ||
  /^application\/(json|x-ndjson)\s*(;|$)/i.test(headers['content-type'] ?? '')

/** Ends a request whose body is not complete in time, as one that was too slow. */
export function limitBodyTime(app: FastifyInstance, { raw }: FastifyRequest, withinMs: number): void {
  if (raw.headers['transfer-encoding'] === undefined && !Number(raw.headers['content-length'])) return
  const timer = setTimeout(() => {
    const error = Object.assign(new Error('the body is too slow'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
    app.server.emit('clientError', error, raw.socket)
    // What comes after that answer must change nothing.
    setImmediate(() => raw.destroy())
  }, withinMs)
  raw.once('end', () => clearTimeout(timer))
  raw.once('close', () => clearTimeout(timer))
}

/** The pieces of a streamed list. Throws `too_slow` for a sender that drips: lists have few places. */
export async function* paced(
  list: Readable,
  pace: { graceMs: number; perSecond: number },
): AsyncGenerator<Uint8Array, void, undefined> {
  const patience = new SenderPatience(pace)
  // A list that is refused in the middle is answered, over a connection that is still there.
  const pieces = list.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>
  const expired = Promise.withResolvers<never>()
  expired.promise.catch(() => {})
  try {
    for (;;) {
      patience.wait(() => expired.reject(drips(pace.perSecond)))
      const { done, value } = await Promise.race([pieces.next(), expired.promise])
      if (done) return
      patience.got(value.length)
      yield value
    }
  } finally {
    patience.stop()
  }
}

const drips = (perSecond: number) =>
  new RequestRefused('too_slow', `the list comes in slower than ${perSecond} bytes a second`)
