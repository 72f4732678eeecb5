import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { pageAt } from '../../../console/page-paths.ts'
import { pageFiles, type PageFile } from './page-files.ts'

const assetPrefix = '/assets/'

/** Scripts and styles of this host only; nothing inline, nothing framed, no request to another host. */
const pageHeaders = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
  'Cross-Origin-Opener-Policy': 'same-origin',
}

/** What is not below /api is the page's. It decides how a request is answered that was not routed, and nothing else. */
export const isPagePath = (path: string): boolean => path !== '/api' && !path.startsWith('/api/')

/** Serves the script and the style sheet. */
export function serveAssets(app: FastifyInstance, notFound: (reply: FastifyReply) => void): void {
  app.get(`${assetPrefix}:name`, { config: { isOpen: true } }, async (request, reply) => {
    const asset = (await pageFiles())?.assets.get((request.params as { name: string }).name)
    if (!asset) {
      notFound(reply)
      return reply
    }
    // The name changes with the content.
    reply.header('Cache-Control', 'public, max-age=31536000, immutable')
    return sendFile(request, reply, asset)
  })
}

/**
 * Answers a path of the page with its HTML, which finds out by the path what to show; browsers ask for it each time, so that
 * an upgraded console is never met by an old page. False, with nothing done, where the answer is not the page.
 */
export async function answerPage(
  request: FastifyRequest,
  reply: FastifyReply,
  path: string,
): Promise<boolean> {
  const { method, headers } = request
  if (method !== 'GET' && method !== 'HEAD') return false
  const page = pageAt(path)?.page
  if (!page && !headers.accept?.includes('text/html')) return false
  const files = await pageFiles()
  if (!files) {
    const text = 'The page is not built: run `npm run build`. The admin API is at /api/v1/openapi.json.\n'
    void reply.code(503).type('text/plain; charset=utf-8').send(text)
    return true
  }
  reply.code(page ? 200 : 404).headers({ ...pageHeaders, 'Cache-Control': 'no-cache' })
  sendFile(request, reply, (page && files.html.get(page)) ?? files.index)
  return true
}

function sendFile(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  { type, tag, body, gzipped }: PageFile,
): FastifyReply {
  reply.headers({ 'Content-Type': type, ETag: tag, Vary: 'Accept-Encoding' })
  if (reply.statusCode === 200 && headers['if-none-match']?.includes(tag)) return reply.code(304).send()
  const isGzip = /\bgzip\b/.test(String(headers['accept-encoding'] ?? ''))
  const content = isGzip ? gzipped : body
  if (isGzip) reply.header('Content-Encoding', 'gzip')
  reply.header('Content-Length', content.length)
  return reply.send(content)
}
