import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { permissionsTable } from '../../scripts/permissions-table.ts'
import { setupCommand } from '../../src/cli/setup.ts'
import { loadConfig } from '../../src/config/config.ts'
import { variableNames } from '../../src/config/variables.ts'
import { createAuthority } from '../support/secured/certificates.ts'
import { codeBlocks, readPage, root } from '../support/docs.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'

const page = readPage('docs/secured-clusters.md')
const blocks = codeBlocks('sh', ['docs/secured-clusters.md'])

test('the page’s permissions match those of the parts', () => {
  const table = /<!-- permissions -->(.*)<!-- \/permissions -->/s.exec(page)?.[1]?.trim()
  assert.equal(table, permissionsTable(), 'run `node scripts/generate-docs.ts`')
})

test('every way to connect on the page is an accepted configuration', async (t) => {
  const folder = await temporaryFolder(t)
  const authority = await createAuthority(t)
  const { cert, key } = await authority.issue()
  const contents: Record<string, string> = {
    '/etc/postrider/kafka-ca.pem': authority.ca,
    '/etc/postrider/postrider.pem': cert,
    '/etc/postrider/postrider.key': key,
    '/run/secrets/kafka-password': 'a-password\n',
    '/run/secrets/kafka-client-secret': 'a-secret\n',
  }
  const ways = blocks.filter((code) => code.startsWith('export '))
  assert.equal(ways.length, 5)
  const logins: unknown[] = []
  for (const code of ways) {
    const env: Record<string, string> = {}
    for (const line of code.trimEnd().split('\n')) {
      const [, name, value] = /^export ([A-Z_]+)=(\S+)$/.exec(line)!
      assert.ok(
        variableNames.some((known) => known === name || `${known}_FILE` === name),
        name,
      )
      env[name!] = value!
      if (!name!.endsWith('_FILE')) continue
      env[name!] = join(folder, value!.replaceAll('/', '-'))
      await writeFile(env[name!]!, contents[value!]!)
    }
    const { ssl, sasl } = loadConfig(env).kafka
    assert.ok(ssl)
    logins.push(sasl?.mechanism ?? (ssl.cert ? 'certificate' : null))
  }
  assert.deepEqual(logins, [null, null, 'scram-sha-512', 'certificate', 'oauthbearer'])
})

test('every command that the page names exists', () => {
  const help = setupCommand().helpInformation()
  const commands = blocks.flatMap((code) => code.split('\n')).filter((line) => line.startsWith('npx '))
  assert.ok(commands.length > 2)
  for (const line of commands) {
    assert.match(line, /^npx postrider setup /)
    for (const [flag] of line.matchAll(/--[a-z-]+/g)) assert.ok(help.includes(`${flag} `), line)
  }
})

test('every error that the page names exists', () => {
  const sources = globSync('src/**/*.ts', { cwd: root }).map((name) => readFileSync(join(root, name), 'utf8'))
  const code = sources.join('\n').replace(/\$\{[^{}]*\}/g, '…')
  const errors = [...page.matchAll(/^\| `([^`]+)` +\|/gm)].map(([, text]) => text!)
  assert.ok(errors.length > 15)
  for (const text of errors) {
    // What is filled in stands as an ellipsis, and the operations of a permission are many.
    const said = text
      .split('…')
      .map((part) => part.trim().replace(/READ topic$/, ''))
      .filter((part) => part !== '')
    assert.ok(said.length > 0 && said.every((part) => code.includes(part.trim())), text)
  }
})
