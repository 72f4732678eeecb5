// Shows that each promise is held by its test: switches off the mechanism behind it, in a copy of this checkout, and
// expects the test to fail. The same test has to pass on the copy as it is, or its failure would say nothing.
//
//   npm run test:mutations                               all of them
//   npm run test:mutations -- --list                     what there is
//   npm run test:mutations -- --only no-retry-budget     these alone; can be repeated
//   npm run test:mutations -- --json                     a line of JSON each
import { cp, readFile, symlink, writeFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { parseArgs } from 'node:util'
import { messageOf } from '../src/errors.ts'
import { mutations } from '../test/mutations/catalogue.ts'
import { mutate, type Mutation, type MutationResult } from './mutations/mutation.ts'
import { runTest } from './mutations/run-test.ts'
import { unknownNames } from './mutations/unknown-names.ts'
import { withTestServers } from './test-servers.ts'

const root = join(import.meta.dirname, '..')
/** Not copied: large folders, and those of other tools. */
const leftOut = new Set(['node_modules', '.git', '.postrider', 'dist'])

const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    process.exitCode = signal === 'SIGINT' ? 130 : 143
    interrupted.abort(new Error('interrupted'))
  })
}

try {
  const code = await main()
  process.exitCode ??= code
} catch (error) {
  if (!interrupted.signal.aborted) console.error(messageOf(error))
  process.exitCode ??= 1
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true },
      list: { type: 'boolean' },
      json: { type: 'boolean' },
    },
  })
  const selected = select(values.only)
  if (values.list) {
    for (const { id, test } of selected)
      console.log(values.json ? JSON.stringify({ id, test }) : `${id}\n    ${test.name}`)
    return 0
  }
  await checkAll(selected)
  const begin = performance.now()
  const results = await withTestServers(interrupted.signal, async (env, folder) => {
    Object.assign(process.env, env)
    return runAll(selected, join(folder, 'tree'), values.json ?? false)
  })
  const minutes = (performance.now() - begin) / 60_000
  const caught = results.filter(({ verdict }) => verdict === 'caught').length
  if (!values.json) console.log(`\n${caught} of ${results.length} caught, in ${Math.ceil(minutes)} minutes.`)
  return caught === results.length ? 0 : 1
}

function select(only: string[] | undefined): readonly Mutation[] {
  if (!only) return mutations
  return only.map((id) => {
    const found = mutations.find((mutation) => mutation.id === id)
    if (!found) throw new Error(`there is no mutation "${id}": see --list`)
    return found
  })
}

/** Checks all of them before the first one runs: one that is out of date would only be found after minutes. */
async function checkAll(selected: readonly Mutation[]): Promise<void> {
  for (const mutation of selected) mutate(await readFile(join(root, mutation.file), 'utf8'), mutation)
  const unknown = unknownNames(root, selected)
  if (unknown.length > 0) throw new Error(unknown.join('\n'))
}

async function runAll(
  selected: readonly Mutation[],
  tree: string,
  asJson: boolean,
): Promise<MutationResult[]> {
  await copyTree(tree)
  const results: MutationResult[] = []
  const soundness = new Map<string, Promise<string | null>>()
  for (const mutation of selected) {
    const begin = performance.now()
    const key = JSON.stringify(mutation.test)
    if (!soundness.has(key)) soundness.set(key, whyUnsound(tree, mutation))
    const unsound = await soundness.get(key)!
    const found =
      unsound === null ? await tryOut(tree, mutation) : { verdict: 'broken' as const, detail: unsound }
    interrupted.signal.throwIfAborted()
    const result = { mutation, ...found, seconds: (performance.now() - begin) / 1_000 }
    results.push(result)
    report(result, results.length, selected.length, asJson)
  }
  return results
}

/** Null when the test passes with nothing switched off. */
async function whyUnsound(tree: string, { test }: Mutation): Promise<string | null> {
  const { passed, failed, broken } = await runTest(tree, test, interrupted.signal)
  if (broken !== null) return `test/${test.file} does not run: ${broken}`
  if (failed.length > 0) return `fails with nothing switched off: ${failed.join('; ')}`
  if (!passed.some((name) => name.includes(test.name))) return `no test of this name in test/${test.file}`
  return null
}

async function tryOut(tree: string, mutation: Mutation): Promise<Pick<MutationResult, 'verdict' | 'detail'>> {
  const path = join(tree, mutation.file)
  const before = await readFile(path, 'utf8')
  await writeFile(path, mutate(before, mutation))
  try {
    const { passed, failed, broken } = await runTest(tree, mutation.test, interrupted.signal)
    if (failed.length > 0) return { verdict: 'caught', detail: failed.join('; ') }
    if (broken !== null) return { verdict: 'broken', detail: broken }
    return { verdict: 'survived', detail: `passed: ${passed.join('; ')}` }
  } finally {
    await writeFile(path, before)
  }
}

async function copyTree(tree: string): Promise<void> {
  await cp(root, tree, {
    recursive: true,
    filter: (path) => !leftOut.has(relative(root, path).split(sep)[0]!),
  })
  await symlink(join(root, 'node_modules'), join(tree, 'node_modules'))
}

function report(
  { mutation, verdict, detail, seconds }: MutationResult,
  at: number,
  of: number,
  asJson: boolean,
) {
  if (asJson) {
    const { id, test } = mutation
    console.log(JSON.stringify({ id, test, verdict, detail, seconds: Number(seconds.toFixed(1)) }))
    return
  }
  const line = `[${at}/${of}] ${verdict.padEnd(8)} ${seconds.toFixed(1).padStart(5)} s  ${mutation.id}`
  console.log(verdict === 'caught' ? line : `${line}\n    ${detail}`)
}
