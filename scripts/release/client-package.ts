import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import ts from 'typescript'

const entry = 'src/client/index'

/**
 * The client library as a package of its own, without dependencies: what its entry imports, and nothing else of the
 * built package. Throws when it imports what is not part of Node.
 * @returns the folder
 */
export function makeClientPackage(dist: string, to: string): string {
  for (const extension of ['.js', '.d.ts'])
    for (const file of filesBehind(dist, `${entry}${extension}`)) {
      mkdirSync(dirname(join(to, file)), { recursive: true })
      cpSync(join(dist, file), join(to, file))
    }
  const { version, license, type, engines } = JSON.parse(
    readFileSync(join(dist, 'package.json'), 'utf8'),
  ) as Record<string, unknown>
  const manifest = {
    name: 'postrider-client',
    version,
    description: 'Sends analytics calls to a Postrider collector.',
    license,
    type,
    engines,
    exports: { '.': { types: `./${entry}.d.ts`, default: `./${entry}.js` } },
    sideEffects: false,
  }
  writeFileSync(join(to, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  cpSync(join(dist, 'LICENSE'), join(to, 'LICENSE'))
  writeFileSync(
    join(to, 'README.md'),
    `# postrider-client\n\nThe client library of Postrider without its server parts: \`import { Analytics } from 'postrider-client'\`. It is what the package \`postrider\` exports, of the same version. Straight to Kafka, without a collector, goes only \`postrider/kafka\`.\n`,
  )
  return to
}

/** A file and all that it imports, by paths relative to `dist`. */
function filesBehind(dist: string, first: string): Set<string> {
  const found = new Set([first])
  for (const file of found) {
    const text = readFileSync(join(dist, file), 'utf8')
    for (const { fileName } of ts.preProcessFile(text).importedFiles) {
      if (fileName.startsWith('node:')) continue
      if (!fileName.startsWith('.')) throw new Error(`the client imports ${fileName} in ${file}`)
      const path = relative(dist, join(dist, dirname(file), fileName))
      found.add(first.endsWith('.d.ts') ? path.replace(/(?:\.d)?\.[jt]s$/, '.d.ts') : path)
    }
  }
  return found
}
