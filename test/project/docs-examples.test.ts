import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { findCommand } from '../../src/local/java.ts'
import { freePort } from '../../src/local/ports.ts'
import { bareEnv } from '../support/deployment/bare-env.ts'
import { collectorDouble, writeKey } from '../support/calls/collector-double.ts'
import { until } from '../support/until.ts'
import { codeBlocks, root } from '../support/docs.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'

test('the example in docs/client.md sends its calls', async (t) => {
  const collector = await collectorDouble(t)
  const examples = codeBlocks('js', ['docs/client.md']).filter((code) => code.includes('endpoint: '))
  assert.equal(examples.length, 1)
  const code = examples[0]!.replace('http://127.0.0.1:8080', collector.url)
  const env = { ...bareEnv, WRITE_KEY: writeKey }
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    cwd: root,
    env,
    stdio: 'inherit',
  })
  const [status] = (await once(child, 'exit')) as [number]
  assert.equal(status, 0)
  assert.equal(collector.taken.size, 2)
  assert.deepEqual(collector.faults, [])
})

/** Runs one of the receivers on a port of its own. */
async function receiver(t: TestContext, code: string, fileName: string, command: string): Promise<string> {
  const port = await freePort()
  const file = join(await temporaryFolder(t), fileName)
  assert.ok(code.includes('4000'))
  await writeFile(file, code.replace('4000', String(port)))
  const child = spawn(command, [file], {
    env: { ...bareEnv, SHARED_SECRET: 's3cret' },
    stdio: 'ignore',
  })
  t.after(() => child.kill('SIGKILL'))
  const url = `http://127.0.0.1:${port}/`
  await until(() =>
    fetch(url, { method: 'HEAD' }).then(
      () => true,
      () => false,
    ),
  )
  return url
}

const receivers: [page: string, language: string, marker: string, fileName: string, command: string][] = [
  ['README.md', 'js', 'isAuthentic', 'receiver.mjs', process.execPath],
  ['docs/receivers.md', 'js', 'isAuthentic', 'receiver.mjs', process.execPath],
  ['docs/receivers.md', 'python', 'is_authentic', 'receiver.py', 'python3'],
]
for (const [page, language, marker, fileName, command] of receivers) {
  const found = command.startsWith('/') || (await findCommand(command, process.env))
  test(
    `the receiver in ${language} of ${page} accepts right signatures and rejects wrong ones`,
    { skip: !found },
    async (t) => {
      const code = codeBlocks(language, [page]).find((block) => block.includes(marker))!
      const url = await receiver(t, code, fileName, command)
      const body = JSON.stringify({ type: 'track', userId: 'ü', event: 'Hello' })
      const signature = createHmac('sha1', 's3cret').update(body).digest('hex')
      const answers = await Promise.all(
        [signature, signature.replace(/^./, (digit) => (digit === '0' ? '1' : '0')), '', 'ü', null].map(
          async (header) => {
            const headers = header === null ? {} : { 'x-signature': Buffer.from(header).toString('latin1') }
            return (await fetch(url, { method: 'POST', body, headers })).status
          },
        ),
      )
      assert.deepEqual(answers, [200, 401, 401, 401, 401])
    },
  )
}
