import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** A script as it is served. */
export interface ServedScript {
  plain: Buffer
  zipped: Buffer
  /** Of what it holds. */
  etag: string
}

/** The browser SDK of `@segment/analytics-next`. */
export interface BrowserSdk {
  /** What a page's script tag loads. */
  script: ServedScript
  /** What that loads when it needs it, by file name, which says what is in it. */
  chunks: ReadonlyMap<string, ServedScript>
}

const packageName = '@segment/analytics-next'

/**
 * The SDK's standalone build takes its settings and its parts from wherever its own script tag points to, but only over
 * https; where that cannot be told, from Segment. This says it for http, for a tag that was removed, and for a bundle.
 * Its functions see `postriderBase` and `postriderHost`; the page does not.
 */
const prelude = `var tag=document.currentScript,postriderBase=tag?tag.src.replace(/\\/analytics\\.js\\/v1\\/.*$/,""):"",postriderHost=postriderBase.replace(/^https?:\\/\\//,"")+"/v1",key=tag&&tag.getAttribute("data-global-segment-analytics-key")||"analytics";if(postriderBase){var queue=window[key]=window[key]||[];queue._cdn=queue._cdn||postriderBase}`

/**
 * What the build says of other hosts, each exactly once, and what it says here. The last one is loaded by browsers of 2016
 * and before: they do without.
 */
const replacements: readonly [string, string][] = [
  ['"api.segment.io/v1"', 'postriderHost'],
  ['||"https://cdn.segment.com"', '||postriderBase'],
  [':"https://cdn.segment.com/analytics.js/v1/"', ':postriderBase+"/analytics.js/v1/"'],
  [':"https://cdn.segment.com/analytics-next/bundles/"', ':postriderBase+"/analytics-next/bundles/"'],
  [
    '"https://cdnjs.cloudflare.com/ajax/libs/babel-polyfill/7.7.0/polyfill.min.js"',
    '"data:text/javascript,"',
  ],
]

/** A build has what is served in a folder of its own: whoever installs it needs none of what the package depends on. */
const builtFolder = join(import.meta.dirname, '../../../browser-sdk')

const packageFolder = (): string =>
  existsSync(builtFolder)
    ? builtFolder
    : dirname(createRequire(import.meta.url).resolve(`${packageName}/package.json`))

const scripts = 'dist/umd'
const isChunk = (name: string): boolean => /^[\w-]+\.bundle\.[0-9a-f]+\.js$/.test(name)

/** What is read of the package, by paths in its folder. */
export async function filesOfBrowserSdk(): Promise<{ folder: string; paths: string[] }> {
  const folder = packageFolder()
  const chunks = (await readdir(join(folder, scripts))).filter(isChunk)
  const names = ['standalone.js', ...chunks].map((name) => join(scripts, name))
  return { folder, paths: ['package.json', 'LICENSE.MD', ...names] }
}

/** Reads it, about 300 KB. Rejects where the package is not installed, or its build says other things of hosts. */
export async function readBrowserSdk(): Promise<BrowserSdk> {
  const folder = packageFolder()
  const manifest = join(folder, 'package.json')
  const files = join(folder, scripts)
  const [{ version }, license, standalone, names] = await Promise.all([
    readFile(manifest, 'utf8').then((text) => JSON.parse(text) as { version: string }),
    readFile(join(folder, 'LICENSE.MD'), 'utf8'),
    readFile(join(files, 'standalone.js'), 'utf8'),
    readdir(files),
  ])
  let text = standalone
  for (const [from, to] of replacements) {
    const [before, after, ...others] = text.split(from)
    if (after === undefined || others.length > 0)
      throw new Error(`${packageName} ${version} does not say ${from} exactly once`)
    text = before + to + after
  }
  const about = `/* ${packageName} ${version}, served by Postrider, which changed only the hosts it names.\n${license.trim()} */\n`
  const sourceMap = /\n\/\/# sourceMappingURL=\S+\s*$/
  const script = await served(`${about}(function(){${prelude}\n${text.replace(sourceMap, '')}\n})();\n`)
  const chunks = await Promise.all(
    names.filter(isChunk).map(async (name) => {
      const text = await readFile(join(files, name), 'utf8')
      return [name, await served(text.replace(sourceMap, ''))] as const
    }),
  )
  return { script, chunks: new Map(chunks) }
}

const zip = promisify(gzip)

async function served(text: string): Promise<ServedScript> {
  const plain = Buffer.from(text)
  const hash = createHash('sha256').update(plain).digest('base64url').slice(0, 16)
  return { plain, zipped: await zip(plain, { level: 9 }), etag: `"${hash}"` }
}
