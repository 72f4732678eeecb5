import assert from 'node:assert/strict'
import { existsSync, globSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import { test } from 'node:test'
import { fromPairs, decodeFinished, tallyIdOf } from '../../src/core/offsets/offset-runs.ts'
import { LedgerChain, type Fact } from '../../src/core/ledger/ledger-chain.ts'
import type { Tally } from '../../src/core/ledger/tally.ts'
import { allPages, proseOf, readPage, root, userPages } from '../support/docs.ts'

const linesOf = (page: string): number => readPage(page).trimEnd().split('\n').length

test('the README has at most 200 lines, and every page at most 300', () => {
  assert.ok(linesOf('README.md') <= 200, `README.md has ${linesOf('README.md')} lines`)
  const long = userPages.filter((page) => linesOf(page) > 300)
  assert.deepEqual(long, [])
})

test('every page of docs/ is in the README’s index', () => {
  const readme = readPage('README.md')
  const index = readme.slice(readme.indexOf('## Documentation'), readme.indexOf('## Contribute'))
  const missing = userPages.filter((page) => page.startsWith('docs/') && !index.includes(`](${page})`))
  assert.deepEqual(missing, [])
})

/** The anchors that GitHub gives to a page's headings. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>()
  for (const [, heading] of readPage(page)
    .replace(/^```.*?^```/gms, '')
    .matchAll(/^#{1,6} (.+)$/gm)) {
    const text = heading!.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const slug = text.replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-')
    let anchor = slug
    for (let copy = 1; anchors.has(anchor); copy++) anchor = `${slug}-${copy}`
    anchors.add(anchor)
  }
  return anchors
}

test('every relative link and anchor exists', () => {
  const broken: string[] = []
  for (const page of allPages) {
    const links = [...proseOf(readPage(page)).matchAll(/\](?:\(|: )(?!https?:)([^)\s]+)/g)].map(
      ([, link]) => link!,
    )
    assert.ok(links.length > 0 || page.startsWith('test/'), `${page} has no links`)
    for (const link of links) {
      const [path, anchor] = link.split('#') as [string, string | undefined]
      const target = path === '' ? page : normalize(join(dirname(page), path))
      const isThere = existsSync(join(root, target))
      if (!isThere || (anchor !== undefined && !anchorsOf(target).has(anchor)))
        broken.push(`${page}: ${link}`)
    }
  }
  assert.deepEqual(broken, [])
})

test('every file and folder of the repository that a page names exists', () => {
  const names = new Set(
    globSync('{src,test,scripts,bench}/**/*.ts', { cwd: root }).map((file) => basename(file)),
  )
  const missing: string[] = []
  for (const page of allPages) {
    if (page.startsWith('test/')) continue
    const text = readPage(page)
    for (const [path] of text.matchAll(
      /\b(?:src|test|scripts|schemas)\/[\w./-]*[\w-]|\bbench\/[\w-]+\.\w+/g,
    )) {
      // A folder of the package that `npm run build` makes.
      if (text.includes(`dist/${path}`)) continue
      const file = normalize(path)
      if (!existsSync(join(root, file)) && !existsSync(join(root, `${file}.ts`)))
        missing.push(`${page}: ${path}`)
    }
    for (const [, path] of text.matchAll(/`(?:[\w-]+\/)*([\w-]+(?:\.test)?\.ts)`/g))
      if (!names.has(path!) && path !== 'script.ts') missing.push(`${page}: ${path}`)
    for (const [, path] of text.matchAll(/`((?:forwarder|core|collector|adapters)\/[\w./-]+\.ts)`/g))
      if (!existsSync(join(root, 'src', path!))) missing.push(`${page}: src/${path}`)
  }
  assert.deepEqual(missing, [])
})

test('an audit confirms the example of the ledger’s chain in docs/architecture.md', () => {
  interface Step {
    tally: Tally
    commit: { position: number; metadata: string }
  }
  const [, json] = /<!-- ledger-example -->\n+```json\n(.*?)```/s.exec(readPage('docs/architecture.md'))!
  const steps = JSON.parse(json!) as Step[]
  assert.equal(steps.length, 2)
  for (const [index, { commit }] of steps.entries()) {
    const runs = decodeFinished(commit.position, commit.metadata)
    const facts: Fact[] = []
    const sink = () => ({ add: (fact: Fact) => void facts.push(fact) })
    const chain = new LedgerChain({ position: commit.position, runs }, tallyIdOf(commit.metadata), sink)
    for (const { tally } of steps.slice(0, index + 1)) chain.add(tally, 0)
    const { faults, finished, start } = chain.end()
    assert.deepEqual(faults, [])
    assert.deepEqual(start, { position: 100, runs: [] })
    assert.deepEqual(finished, { position: commit.position, runs })
    const tallied = facts.flatMap(({ tallied }) => tallied.map(({ start, end }) => [start, end]))
    assert.deepEqual(tallied.slice(0, 2), [
      [100, 102],
      [103, 105],
    ])
  }
  // A tally that is missing is seen.
  const last = steps[1]!
  const chain = new LedgerChain(
    { position: last.commit.position, runs: [] },
    tallyIdOf(last.commit.metadata),
    () => ({ add() {} }),
  )
  chain.add({ ...last.tally, finished: [0, 1] }, 0)
  assert.notDeepEqual(chain.end().faults, [])
  assert.deepEqual(fromPairs(last.tally.before!, last.tally.start), [{ start: 103, end: 105 }])
})
