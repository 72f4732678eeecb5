import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { withIo } from '../../src/cli/io.ts'
import { agreed } from '../../src/cli/terminal.ts'
import { testIo } from '../support/deployment/program-here.ts'

/** A terminal that answers with this; null: it is closed. */
function terminal(answer: string | null, isTTY = true) {
  const [input, output] = [new PassThrough(), new PassThrough()]
  if (answer === null) input.end()
  else input.write(`${answer}\n`)
  return {
    streams: { stdin: Object.assign(input, { isTTY }), stderr: Object.assign(output, { isTTY }) },
    // Less what moves the cursor.
    shown: () => stripVTControlCharacters(String(output.read() ?? '')),
  }
}

type Streams = ReturnType<typeof terminal>['streams']

const askedAt = (streams: Streams, signal = new AbortController().signal): Promise<boolean> =>
  withIo({ ...testIo({ env: {} }, signal), ...streams }, () => agreed('Erase?', signal))

test('only a yes at a terminal is one; without a terminal nobody is asked', async () => {
  for (const [answer, isYes] of [
    ['y', true],
    [' YES ', true],
    ['', false],
    ['n', false],
    ['yesterday', false],
    [null, false],
  ] as const) {
    const { streams, shown } = terminal(answer)
    assert.equal(await askedAt(streams), isYes, String(answer))
    assert.ok(shown().startsWith('Erase? [y/N] '))
  }
  const pipe = terminal('n', false)
  assert.equal(await askedAt(pipe.streams), true)
  assert.equal(pipe.shown(), '')
})

test('a question that is broken off is answered by no', async () => {
  const stopping = new AbortController()
  const asked = askedAt(terminalWithoutAnswer(), stopping.signal)
  stopping.abort()
  assert.equal(await asked, false)
})

const terminalWithoutAnswer = () => ({
  stdin: Object.assign(new PassThrough(), { isTTY: true }),
  stderr: Object.assign(new PassThrough(), { isTTY: true }),
})
