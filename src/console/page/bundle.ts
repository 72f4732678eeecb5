import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { build, stop, type Metafile, type Plugin } from 'esbuild'
import { optionFields } from '../../operators/option-fields.ts'

const web = join(import.meta.dirname, '../../web')
/** Where browsers find what is not the page itself. */
const assets = '/assets/'

/**
 * Bundles the sources of the page, by name: the HTML, the style sheet, the script that it begins with, and those that
 * single pages and plots load when they are needed first. All but the HTML have a hash of their content in the name. Each
 * page has HTML of its own, named as the page, which asks at once for all that it needs; `index.html` is for what is none.
 */
export async function bundlePage(): Promise<Map<string, Uint8Array>> {
  try {
    const apart = await bundle([])
    const { outputFiles, metafile } = await bundle([withShared(apart.metafile)])
    const files = new Map(outputFiles.map(({ path, contents }) => [basename(path), contents]))
    const outputs = Object.entries(metafile.outputs)
    const entryOf = (extension: string) =>
      outputs.find(
        ([path, { entryPoint }]) => entryPoint !== undefined && path.endsWith(extension) && isEntry(path),
      )!
    const [script] = entryOf('.js')
    const [styles] = entryOf('.css')
    const names = { script: basename(script), styles: basename(styles) }
    const needed = neededBy(script, metafile.outputs)
    files.set('index.html', Buffer.from(shell({ ...names, needed })))
    for (const [page, module] of await pageModules()) {
      const [output] = outputs.find(([, { entryPoint }]) => entryPoint?.endsWith(module))!
      const all = new Set([...needed, basename(output), ...neededBy(output, metafile.outputs)])
      files.set(`${page}.html`, Buffer.from(shell({ ...names, needed: [...all] })))
    }
    return files
  } finally {
    // Its process would live as long as this one.
    await stop()
  }
}

const bundle = (plugins: Plugin[]) =>
  build({
    entryPoints: { console: join(web, 'main.tsx'), style: join(web, 'styles/style.css') },
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    absWorkingDir: web,
    outdir: web,
    plugins,
    write: false,
    metafile: true,
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    target: 'es2024',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    // The schemas that they come from are not for browsers. A text: what is none becomes a script of its own.
    define: { OPTION_FIELDS: JSON.stringify(JSON.stringify(optionFields())) },
    logLevel: 'silent',
  })

/** Large, and for pages with forms of options only: a script of their own, which those ask for. */
const forForms = ['components/options.ts', 'components/option-control.tsx']

/**
 * Puts all that pages share into one script, by having every page import it. Left to itself, esbuild makes a script for each
 * set of pages that share something: thirty, some of 200 bytes, and a request costs a browser more than such a script.
 */
function withShared({ outputs }: Metafile): Plugin {
  const all = Object.values(outputs)
  const own = (paths: string[]) => paths.filter((path) => !path.includes('node_modules'))
  const shared = own(
    all.filter(({ entryPoint }) => entryPoint === undefined).flatMap(({ inputs }) => Object.keys(inputs)),
  ).filter((path) => !forForms.includes(path))
  const imports = shared.map((path) => `\nimport ${JSON.stringify(join(web, path))}`).join('')
  const entries = new Set(
    own(all.flatMap(({ entryPoint }) => entryPoint ?? [])).map((path) => join(web, path)),
  )
  return {
    name: 'shared',
    setup({ onLoad }) {
      onLoad({ filter: /\.tsx$/ }, async ({ path }) =>
        entries.has(path) ? { contents: (await readFile(path, 'utf8')) + imports, loader: 'tsx' } : null,
      )
    },
  }
}

/** Files that are loaded later are entry points, too. */
const isEntry = (path: string): boolean => /^(console|style)-/.test(basename(path))

/** The scripts that a script imports, and those that these import: asked for beside it, not after it. */
function neededBy(output: string, outputs: Metafile['outputs'], found = new Set<string>()): string[] {
  for (const { path, kind } of outputs[output]!.imports) {
    if (kind !== 'import-statement' || found.has(basename(path))) continue
    found.add(basename(path))
    neededBy(path, outputs, found)
  }
  return [...found]
}

/** By the page's name the end of its module's path, as the list of pages has them. */
async function pageModules(): Promise<Map<string, string>> {
  const list = await readFile(join(web, 'pages/pages.ts'), 'utf8')
  const found = list.matchAll(/^ {2}(\w+): \(\) =>\s+import\('\.(\/[^']+)'\)/gm)
  return new Map([...found].map(([, page, module]) => [page!, `pages${module}`]))
}

const icon = encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#3d52d5"/>' +
    '<path d="M8 9.5h11.5a4.75 4.75 0 0 1 0 9.5H12v4.5" fill="none" stroke="#fff" stroke-width="3.2" stroke-linecap="round" stroke-linejoin="round"/>' +
    '<circle cx="12" cy="23.5" r="2.4" fill="#fff"/></svg>',
)

interface Shell {
  script: string
  needed: readonly string[]
  styles: string
}

const shell = ({ script, needed, styles }: Shell): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Postrider</title>
    <link rel="icon" href="data:image/svg+xml,${icon}">
    <link rel="stylesheet" href="${assets}${styles}">
${needed.map((name) => `    <link rel="modulepreload" href="${assets}${name}">\n`).join('')}    <script type="module" src="${assets}${script}"></script>
  </head>
  <body>
    <div id="app"></div>
    <noscript>This page needs JavaScript. Everything it shows is in the admin API: /api/v1/openapi.json</noscript>
  </body>
</html>
`
