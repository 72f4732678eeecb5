import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { buildSync } from 'esbuild'
import ts from 'typescript'

const root = join(import.meta.dirname, '../..')
const entry = 'src/client/index'

/** The oldest Node on which the client is tested. */
export const minClientNodeMajor = 20

/**
 * The client library as a package of its own, without dependencies. One file of CommonJS, so that `require` works on
 * every Node 20, and an ES module that passes on what is in it: an application that uses both has each class once.
 * Throws when the client imports what is not part of Node.
 * @param dist the built package of the server, for the type declarations
 */
export function makeClientPackage(dist: string, to: string, { version, license }: Released): void {
  mkdirSync(to, { recursive: true })
  const types = `types/${relative('src', entry)}`
  const manifest = {
    name: 'postrider-client',
    version,
    description: 'Sends analytics calls from Node to a Postrider collector.',
    license,
    type: 'commonjs',
    engines: { node: `>=${minClientNodeMajor}` },
    // For what does not read `exports`, such as TypeScript with `moduleResolution: node10`.
    main: './index.js',
    types: `./${types}.d.ts`,
    exports: {
      '.': {
        import: { types: './index.d.mts', default: './index.mjs' },
        default: { types: `./${types}.d.ts`, default: './index.js' },
      },
      './package.json': './package.json',
    },
    sideEffects: false,
  }
  writeFileSync(join(to, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  const script = join(to, 'index.js')
  bundle(script)
  const names = Object.keys(createRequire(import.meta.url)(script) as object).sort()
  writeFileSync(join(to, 'index.mjs'), `export { ${names.join(', ')} } from './index.js'\n`)
  writeFileSync(join(to, 'index.d.mts'), `export * from './${types}.js'\n`)
  for (const file of declarationsBehind(dist)) {
    const copy = join(to, 'types', relative('src', file))
    mkdirSync(dirname(copy), { recursive: true })
    // Before TypeScript 5.7 a declaration file cannot be imported as `.ts`.
    writeFileSync(copy, readFileSync(join(dist, file), 'utf8').replaceAll(/(from '\.[^']*)\.ts'/g, "$1.js'"))
  }
  copyFileSync(join(root, 'LICENSE'), join(to, 'LICENSE'))
  copyFileSync(join(import.meta.dirname, 'postrider-client.md'), join(to, 'README.md'))
}

interface Released {
  version: string
  license: string
}

function bundle(to: string): void {
  const { metafile } = buildSync({
    entryPoints: [join(root, `${entry}.ts`)],
    outfile: to,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: `node${minClientNodeMajor}`,
    metafile: true,
    logLevel: 'warning',
  })
  const foreign = Object.values(metafile.outputs)
    .flatMap(({ imports }) => imports.map(({ path }) => path))
    .filter((path) => !path.startsWith('node:'))
  if (foreign.length > 0) throw new Error(`the client imports ${foreign.join(', ')}`)
}

/** The entry's declaration file and all that it imports, by paths relative to `dist`. */
function declarationsBehind(dist: string): Set<string> {
  const found = new Set([`${entry}.d.ts`])
  for (const file of found)
    for (const { fileName } of ts.preProcessFile(readFileSync(join(dist, file), 'utf8')).importedFiles) {
      if (!fileName.startsWith('.')) throw new Error(`the client's types import ${fileName} in ${file}`)
      found.add(join(dirname(file), fileName).replace(/\.[jt]s$/, '.d.ts'))
    }
  return found
}
