import { spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { defaultCacheDir } from '../src/local/parts.ts'

/** Null where it cannot be built here, which has been said. */
type Built = string | null

const built = new Map<string, Built>()

/** The program of a folder with Go sources. What it lacks is got from the Go module proxy, the first time. */
export function goProgram(folder: string): Built {
  const source = join(import.meta.dirname, folder)
  const place = once(source, '{go.mod,go.sum,*.go}', (into) =>
    run('go', ['build', '-v', '-trimpath', '-ldflags', '-s -w', '-o', join(into, 'program'), '.'], source),
  )
  return place === null ? null : join(place, 'program')
}

/** The class path of a folder with Java sources and a pom.xml that names what they use, which Maven gets. */
export function javaClasses(folder: string): Built {
  const source = join(import.meta.dirname, folder)
  const place = once(source, '{pom.xml,*.java}', (into) => {
    // The version that src/local/parts.ts uses, for the same reason.
    const goal = 'org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies'
    const flags = ['-B', '-f', 'pom.xml', '-DincludeScope=runtime', `-DoutputDirectory=${into}`]
    const sources = globSync('*.java', { cwd: source })
    return (
      run('mvn', [...flags, goal], source) ??
      run('javac', ['-d', join(into, 'classes'), '-cp', join(into, '*'), ...sources], source)
    )
  })
  return place === null ? null : `${join(place, 'classes')}:${join(place, '*')}`
}

/** A folder in the cache that is filled once for each state of the sources. */
function once(source: string, pattern: string, fill: (into: string) => string | null): Built {
  const known = built.get(source)
  if (known !== undefined) return known
  const name = source.slice(import.meta.dirname.length + 1).replaceAll('/', '-')
  const hash = createHash('sha256')
  for (const file of globSync(pattern, { cwd: source }).sort()) hash.update(readFileSync(join(source, file)))
  const place = join(defaultCacheDir(), 'bench', `${name}-${hash.digest('hex').slice(0, 16)}`)
  if (!existsSync(place)) {
    console.error(`building bench/${name}, once`)
    const partial = `${place}.${randomBytes(4).toString('hex')}`
    mkdirSync(partial, { recursive: true })
    const problem = fill(partial)
    // Put in place whole, or not at all.
    if (problem === null && !existsSync(place)) renameSync(partial, place)
    rmSync(partial, { recursive: true, force: true })
    if (problem !== null) {
      console.error(`bench/${name} is left out: ${problem}`)
      built.set(source, null)
      return null
    }
  }
  built.set(source, place)
  return place
}

/** Why it failed; null when it did not. Its output is its progress. */
function run(command: string, args: string[], cwd: string): string | null {
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/local/go/bin` }
  const { status, error } = spawnSync(command, args, { cwd, env, stdio: ['ignore', 2, 2] })
  if (error) return 'code' in error && error.code === 'ENOENT' ? `${command} is not installed` : error.message
  return status === 0 ? null : `${command} ended with ${status}`
}
