import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

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
const root = join(import.meta.dirname, '../../../..')
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
