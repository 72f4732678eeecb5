import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { linesOf, maxLineBytes } from '../../../src/cli/produce.ts'
import type { Line } from '../../../src/cli/produce.ts'

async function linesIn(chunks: readonly Buffer[]): Promise<Line[]> {
  async function* input(): AsyncGenerator<Buffer> {
    yield* chunks
  }
  const lines: Line[] = []
  for await (const line of linesOf(input())) lines.push(line)
  return lines
}

test('property: lines and their numbers are the same however the bytes are cut', async () => {
  const character = fc.constantFrom('a', 'é', '😀', ' ', '\n', '\r\n', '\u2028', '"')
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: character, maxLength: 40 }),
      fc.array(fc.nat(160)),
      async (text, cuts) => {
        const bytes = Buffer.from(text)
        const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
        const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
        const expected = text
          .split('\n')
          .map((line, index) => ({ number: index + 1, text: line }))
          .filter((line) => line.text.trim() !== '')
        const lines = await linesIn(chunks)
        assert.deepEqual(
          lines.map(({ number, text }) => ({ number, text })),
          expected,
        )
      },
    ),
  )
})

test('a line that is too long, or not UTF-8, is skipped with its reason, and the next one is read', async () => {
  const chunk = Buffer.alloc(maxLineBytes / 4, 'x')
  const latin = Buffer.from('{"userId":"M\u00fcller"}', 'latin1')
  const lines = await linesIn([
    ...Array<Buffer>(8).fill(chunk),
    Buffer.from('\n'),
    latin,
    Buffer.from('\n{}'),
  ])
  const [long, other, next] = lines
  assert.equal(lines.length, 3)
  assert.deepEqual([long!.number, long!.text, long!.fault?.code], [1, null, 'message_too_large'])
  assert.equal(long!.bytesRead, chunk.length * 8 + 1)
  assert.deepEqual([other!.number, other!.text, other!.fault?.message], [2, null, 'the line is not UTF-8'])
  assert.deepEqual(next, { number: 3, text: '{}', fault: null, bytesRead: other!.bytesRead + 2 })
})
