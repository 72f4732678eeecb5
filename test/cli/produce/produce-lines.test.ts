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

test('a line that is too long is skipped, and the next one is read', async () => {
  const chunk = Buffer.alloc(maxLineBytes / 4, 'x')
  const lines = await linesIn([...Array<Buffer>(8).fill(chunk), Buffer.from('\n{}')])
  assert.deepEqual(lines, [
    { number: 1, text: null, bytesRead: chunk.length * 8 + 1 },
    { number: 2, text: '{}', bytesRead: chunk.length * 8 + 3 },
  ])
})
