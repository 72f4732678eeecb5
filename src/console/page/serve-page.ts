import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { takesGzip } from '../answers.ts'
import { pageAt } from '../page-paths.ts'

export interface PageFile {
  type: string
  /** Strong: changes with the bytes. */
  tag: string
  body: Buffer
  gzipped: Buffer
}

/** The web page, as it is served from memory. */
export interface PageFiles {
  /** Of each page by its name. */
  html: ReadonlyMap<string, PageFile>
  /** For what is none of them. */
  index: PageFile
  /** Scripts and the style sheet, by name; a name holds a hash of the content. */
  assets: ReadonlyMap<string, PageFile>
}

const types: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
}

/** Of the build, or of the checkout. */
const root = join(import.meta.dirname, '../../..')
const builtFolders = [join(root, 'web'), join(root, 'dist/web')]

let loading: Promise<PageFiles | null> | null = null

/** Made once in a process, when it is first asked for. */
export const pageFiles = (): Promise<PageFiles | null> => (loading ??= loadPageFiles())

/**
 * A build has the bundle in it. A checkout bundles its sources, so that what is served is what is there; where esbuild is
 * not installed it takes what was built. Null where there is neither.
 */
async function loadPageFiles(): Promise<PageFiles | null> {
  if (import.meta.filename.endsWith('.ts')) {
    const bundler = await import('./bundle.ts').catch(() => null)
    if (bundler) return pageFilesOf(await bundler.bundlePage())
  }
  const folder = builtFolders.find((each) => existsSync(each))
  if (folder === undefined) return null
  const names = (await readdir(folder)).filter((name) => extname(name) in types)
  const files = names.map(async (name) => [name, await readFile(join(folder, name))] as const)
  return pageFilesOf(new Map(await Promise.all(files)))
}

/** @param bundle by name; HTML is a page, by its name, or `index.html`; the others are assets */
async function pageFilesOf(bundle: ReadonlyMap<string, Uint8Array>): Promise<PageFiles> {
  const assets = new Map<string, PageFile>()
  const html = new Map<string, PageFile>()
  for (const [name, body] of bundle) {
    const file = await pageFileOf(name, Buffer.from(body))
    if (name.endsWith('.html')) html.set(basename(name, '.html'), file)
    else assets.set(name, file)
  }
  return { html, index: html.get('index')!, assets }
}

const pageFileOf = async (name: string, body: Buffer): Promise<PageFile> => ({
  type: types[extname(name)]!,
  tag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
  body,
  gzipped: await promisify(gzip)(body, { level: 9 }),
})

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
  const isGzip = takesGzip(headers)
  const content = isGzip ? gzipped : body
  if (isGzip) reply.header('Content-Encoding', 'gzip')
  reply.header('Content-Length', content.length)
  return reply.send(content)
}
