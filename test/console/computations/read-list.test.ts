import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readList } from '../../../src/operators/audiences/read-list.ts'
import { linesOfFile, linesOfIds } from '../../../src/web/pages/computations/kinds.ts'
import { bytesOf } from '../../support/computations.ts'

type Form = 'id' | 'value'

async function read(text: string | Uint8Array, form: Form = 'id', size = 7) {
  const users: string[] = []
  const values: (string | null)[] = []
  for await (const batch of readList(bytesOf(text, size), form)) {
    assert.equal(batch.line, users.length + 1)
    users.push(...batch.users)
    values.push(...(batch.values ?? []))
  }
  return form === 'id' ? users : users.map((user, index) => `${user} ${values[index]}`)
}

const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string)))
const long = (length: number) => 'x'.repeat(length)

const good: [what: string, form: Form, text: string | Uint8Array, users: string[]][] = [
  ['LF, CRLF and no end', 'id', 'a\r\nb\nc', ['a', 'b', 'c']],
  ['nothing at all', 'id', '', []],
  ['a byte order mark', 'id', '\ufeffa\nb\n', ['a', 'b']],
  ['any script', 'id', 'größe 🙂\nلي\n"q"\n', ['größe 🙂', 'لي', '"q"']],
  ['the longest id', 'id', `${long(1_024)}\n`, [long(1_024)]],
  [
    'values',
    'value',
    '{"userId":"a","value": [ 1.50, " x " ] }\n{"value":null,"userId":"b"}',
    ['a [1.50," x "]', 'b null'],
  ],
]
for (const [what, form, text, users] of good)
  test(`a list with ${what} is read`, async () => assert.deepEqual(await read(text, form), users))

const bad: [what: string, form: Form, text: string | Uint8Array, fault: RegExp][] = [
  ['an empty line', 'id', 'a\n\nb\n', /^line 2 is empty/],
  ['an empty line at the end', 'id', 'a\n\n', /^line 2 is empty/],
  ['an id of 1,025 bytes', 'id', `a\n${long(1_025)}\n`, /^line 2 holds an id of more than 1024 bytes/],
  ['an id of 513 letters of two bytes', 'id', 'ö'.repeat(513), /^line 1 holds an id of more than 1024/],
  ['a line of 64 KB', 'id', `a\nb\n${long(65_537)}`, /^line 3 is longer than 65536 bytes/],
  ['a line of 64 KB that ends', 'id', `a\n${long(65_537)}\nb`, /^line 2 (is longer|holds an id)/],
  ['a NUL', 'id', 'a\nb\0c\n', /^line 2 is not text: it holds control characters/],
  ['a tab', 'id', 'a\tb\n', /^line 1 is not text/],
  ['a CR within', 'id', 'a\rb\n', /^line 1 is not text/],
  ['a C1 control', 'id', 'a\n\u0085b\n', /^line 2 is not text/],
  ['bytes that are no UTF-8', 'id', bytes('a\nb\n', [0xff, 0xfe], '\nc'), /^line 3 is not text in UTF-8/],
  ['a letter that is cut off', 'id', bytes('a\n', [0xc3]), /^line 2 is not text in UTF-8/],
  ['white space around an id', 'id', 'a\n b\n', /^line 2 begins or ends with white space/],
  ['an empty line', 'value', '{"userId":"a","value":1}\n\n', /^line 2 is empty/],
  ['what is no JSON', 'value', 'a\n', /^line 1 is not a JSON object/],
  ['no user', 'value', '{"value":1}', /^line 1 has no userId that is a string/],
  ['a number for a user', 'value', '{"userId":1,"value":1}', /^line 1 has no userId that is a string/],
  ['an empty user', 'value', '{"userId":"","value":1}', /^line 1 is empty/],
  ['half a character', 'value', '{"userId":"\\ud800","value":1}', /^line 1 is not text/],
  ['an escaped tab', 'value', '{"userId":"a\\tb","value":1}', /^line 1 is not text/],
  ['no value', 'value', '{"userId":"a"}', /^line 1 has no value/],
  [
    'a value over 16 KB',
    'value',
    `{"userId":"a","value":"${long(16_384)}"}`,
    /^line 1 has a value of more than/,
  ],
]
for (const [what, form, text, fault] of bad)
  test(`a list by ${form} with ${what} is refused with its line number`, async () => {
    for (const size of [1, 7, 1_000_000])
      await assert.rejects(read(text, form, size), (error: Error & { code: string }) => {
        assert.equal(error.code, 'usage')
        assert.match(error.message, fault)
        assert.match(error.message, /nothing was changed$/)
        return true
      })
  })

test('a file that the page of an audience sends is read with those who leave, whether or not its last line is ended', async () => {
  const json = ['{"userId":"a"}\n{"userId":"b"}\n', '{"userId":"a"}\r\n{"userId":"b"}']
  for (const file of [...json, 'a\n\n b', 'a\nb\n']) {
    const lines = new Blob([await linesOfFile(new Blob([file])), linesOfIds('c', false)])
    const found: string[] = []
    for await (const { users, member } of readList(bytesOf(await lines.text()), 'member'))
      found.push(...users.map((user) => (member ? user : `${user} out`)))
    assert.deepEqual(found, ['a', 'b', 'c out'], file)
  }
})

test('a list yields the same users however it is cut into chunks', async () => {
  const id = fc.stringMatching(/^[a-zö🙂]{1,12}$/u)
  await fc.assert(
    fc.asyncProperty(fc.array(id, { minLength: 1 }), fc.integer({ min: 1, max: 40 }), async (users, size) => {
      assert.deepEqual(await read(users.join('\n'), 'id', size), users)
    }),
  )
})

test('a line without an end is refused before more of it is read', async () => {
  let read = 0
  const endless = async function* () {
    for (; read < 1_000_000; read += 8_192) yield Buffer.alloc(8_192, 'x')
  }
  await assert.rejects(
    async () => {
      for await (const batch of readList(endless(), 'id')) assert.fail(`${batch.users.length} users`)
    },
    { code: 'usage', message: /^line 1 is longer than 65536 bytes/ },
  )
  assert(read < 100_000, `${read} bytes`)
})
