import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { exampleUrl, receiverExamples } from '../../src/web/pages/destination/settings/receiver-examples.ts'
import { root } from '../support/docs.ts'

test('what a form shows to verify a signature is what the docs have, which is run as it stands', async () => {
  const docs = await readFile(join(root, 'docs/receivers.md'), 'utf8')
  const blocks = docs.matchAll(
    /^```(\w+)\n([^]*?)\n```\n\n```sh\nSHARED_SECRET=\$\(cat crm-secret\) (.*)\n```$/gm,
  )
  const documented = Array.from(blocks, ([, , code, run]) => ({ code, run }))
  assert.equal(documented.length, 5)
  assert.deepEqual(
    receiverExamples.map(({ code, run }) => ({ code, run })),
    documented,
  )
  for (const { file, run, code } of receiverExamples) {
    assert.ok(run.includes(file), run)
    assert.ok(`${code} ${run}`.includes(new URL(exampleUrl).port), file)
  }
})
