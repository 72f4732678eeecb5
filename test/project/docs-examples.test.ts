import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { freePort } from '../../src/local/ports.ts'
import { bareEnv } from '../support/deployment/bare-env.ts'
import { collectorDouble, writeKey } from '../support/calls/collector-double.ts'
import { someCall } from '../support/calls/calls.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { needed, toolFolders, type OpsTool } from '../support/ops/tools.ts'
import { until, within } from '../support/until.ts'
import { codeBlocks } from '../support/docs.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'
import { projectWithClient } from '../support/packages/installed-client.ts'

test('the example in docs/client.md sends its calls', async (t) => {
  const collector = await collectorDouble(t)
  const examples = codeBlocks('js', ['docs/client.md']).filter((code) => code.includes('endpoint: '))
  assert.equal(examples.length, 1)
  const code = examples[0]!.replace('http://127.0.0.1:8080', collector.url)
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    cwd: await projectWithClient(t),
    env: { ...bareEnv, WRITE_KEY: writeKey },
    stdio: 'inherit',
  })
  const [status] = (await once(child, 'exit')) as [number]
  assert.equal(status, 0)
  assert.equal(collector.taken.size, 2)
  assert.deepEqual(collector.faults, [])
})

interface Example {
  page: string
  language: string
  fileName: string
  tool: OpsTool | null
}

const receivers: Example[] = [
  { page: 'README.md', language: 'js', fileName: 'receiver.mjs', tool: null },
  { page: 'docs/receivers.md', language: 'js', fileName: 'receiver.mjs', tool: null },
  { page: 'docs/receivers.md', language: 'python', fileName: 'receiver.py', tool: 'python3' },
  { page: 'docs/receivers.md', language: 'go', fileName: 'receiver.go', tool: 'go' },
  { page: 'docs/receivers.md', language: 'php', fileName: 'receiver.php', tool: 'php' },
  { page: 'docs/receivers.md', language: 'java', fileName: 'Receiver.java', tool: 'java' },
]

const secret = 's3crét€'

/** Go compiles its HTTP server for minutes where the machine is busy and nothing is in its cache. */
const compiledMs = 300_000

/** One of a page's receivers in a folder of its own, on a port of its own, and the command that starts it. */
async function receiver(t: TestContext, { page, language, fileName }: Example) {
  const folder = await temporaryFolder(t)
  const port = String(await freePort())
  const onItsPort = (text: string) => text.replaceAll('4000', port)
  const [code, ...others] = codeBlocks(language, [page]).filter((block) => block.includes('SHARED_SECRET'))
  const [command, ...further] = codeBlocks('sh', [page]).filter((block) => block.includes(` ${fileName}`))
  assert.ok(code && command && others.length + further.length === 0)
  assert.ok(code.includes('4000') || command.includes('4000'))
  await writeFile(join(folder, fileName), onItsPort(code))
  // As `openssl rand -hex 32 > crm-secret` writes it.
  await writeFile(join(folder, 'crm-secret'), `${secret}\n`)
  /** Only what a shell has: the secret comes by the command. */
  const env = {
    PATH: [dirname(process.execPath), ...toolFolders].join(delimiter),
    HOME: process.env.HOME ?? folder,
    LC_ALL: 'C.UTF-8',
  }
  const start = (script: string) => {
    const child = spawn('sh', ['-c', onItsPort(script)], { cwd: folder, env, detached: true })
    let written = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (written += text))
    const ended = once(child, 'close') as Promise<[number | null]>
    const kill = async () => {
      // The shell and what it runs are a group of processes of their own.
      if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGKILL')
      await ended
    }
    t.after(kill)
    return { child, ended, kill, written: () => written }
  }
  return { command, start, url: `http://127.0.0.1:${port}/hooks` }
}

const post = async (url: string, body: string, header: string | null): Promise<number> => {
  const headers = header === null ? {} : { 'x-signature': Buffer.from(header).toString('latin1') }
  return (await fetch(url, { method: 'POST', body, headers })).status
}

for (const example of receivers) {
  const { page, language, tool } = example
  const { skip } = tool === null ? { skip: false } : needed(tool)
  const title = `the receiver in ${language} of ${page}`
  test(
    `${title} takes what is delivered, and refuses what is not signed`,
    { skip, timeout: 2 * compiledMs },
    async (t) => {
      const deployment = await deploy(t)
      const { start, command, url } = await receiver(t, example)
      const { child, written } = start(command)
      const body = JSON.stringify({ type: 'track', userId: 'ü', event: 'Hello' })
      await until(
        () => {
          assert.equal(child.exitCode, null, written())
          return post(url, body, null).then(
            () => true,
            () => false,
          )
        },
        compiledMs,
        'that it listens',
      )
      const signature = createHmac('sha1', secret).update(body).digest('hex')
      const unkeyed = createHmac('sha1', '').update(body).digest('hex')
      const changed = signature.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))
      const answers: number[] = []
      for (const header of [signature, changed, signature.slice(0, -2), unkeyed, '', 'ü', null])
        answers.push(await post(url, body, header))
      assert.deepEqual(answers, [200, 401, 401, 401, 401, 401, 401], written())

      await deployment.destination({ urls: [url], secret })
      await deployment.forwarder()
      const messageId = randomUUID()
      await deployment.produce([someCall({ messageId, userId: 'Zoë' })])
      await until(() => written().includes(messageId), 20_000, 'the delivery')
      await deployment.drained()
      assert.deepEqual(await deployment.deadLetters(), [])
    },
  )

  test(`${title} accepts nothing without a secret`, { skip, timeout: 3 * compiledMs }, async (t) => {
    const { start, command, url } = await receiver(t, example)
    for (const assigned of ['', "SHARED_SECRET='' "]) {
      const script = command.replace('SHARED_SECRET=$(cat crm-secret) ', assigned)
      assert.notEqual(script, command)
      const { child, ended, kill, written } = start(script)
      if (language === 'php') {
        const body = '{}'
        const forged = createHmac('sha1', '').update(body).digest('hex')
        let status = 0
        await until(
          async () => {
            assert.equal(child.exitCode, null, written())
            status = await post(url, body, forged).catch(() => 0)
            return status !== 0
          },
          30_000,
          'an answer',
        )
        assert.equal(status, 500)
        await kill()
      } else {
        const [code] = await within(compiledMs, ended, 'its end')
        assert.notEqual(code, 0)
        assert.match(written(), /SHARED_SECRET is not set/)
      }
    }
  })
}
