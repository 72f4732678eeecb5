import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { Command } from 'commander'
import { commandsTable } from '../../../scripts/commands-table.ts'
import { namedCommand, operationWords } from '../../../src/cli/operations/commands-of-operations.ts'
import { fieldsOf, type Field } from '../../../src/operators/fields.ts'
import { addFlags, flagOf, givenFields } from '../../../src/cli/operations/flags-of-fields.ts'
import { program } from '../../../src/cli/program.ts'
import { checked } from '../../../src/operators/check.ts'
import { operations } from '../../../src/operators/operations.ts'
import { readPage } from '../../support/docs.ts'

/** Sessions, what is not saved yet and an audit of a console are for browsers, and the others are a flag of another operation's command. */
const withoutCommand = [
  ...['showSession', 'showLoginWays', 'beginSession', 'endSession', 'testNewDestination'],
  ...['createSourceRegulation', 'dryRunReplay', 'planDeletion', 'stopAudit'],
]

test('each operation has a command, and the program has no word that leads nowhere', async () => {
  const without = operations.filter(({ command }) => command === null).map(({ id }) => id)
  assert.deepEqual(without.sort(), withoutCommand.toSorted())
  const names = (await program([])).commands.map((command) => command.name())
  for (const words of operationWords()) {
    const [name, ...rest] = words.split(' ')
    assert.ok(names.includes(name!), words)
    // That of an audit is made by hand.
    if (name === 'audit') continue
    let command: Command | undefined = namedCommand(name!, name!)
    for (const word of rest) command = command?.commands.find((each) => each.name() === word)
    assert.ok(command, words)
  }
  const leavesOf = (command: Command): Command[] =>
    command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf)
  for (const name of new Set(operationWords().map((words) => words.split(' ')[0]!)))
    for (const leaf of name === 'audit' ? [] : leavesOf(namedCommand(name, name)))
      assert.ok(
        operationWords().some((words) => words.endsWith(leaf.name())),
        leaf.name(),
      )
})

test('docs/commands.md lists the command of each operation', () => {
  const table = /<!-- commands -->(.*)<!-- \/commands -->/s.exec(readPage('docs/commands.md'))?.[1]?.trim()
  assert.equal(table, commandsTable(), 'run `node scripts/generate-docs.ts`')
})

const ownFile = join(mkdtempSync(join(tmpdir(), 'postrider-flags-')), 'body.json')
writeFileSync(ownFile, '{"a":1}\n')
after(() => rmSync(dirname(ownFile), { recursive: true }))

/** What a person types for a field, and what the operation has to get. */
function sample({ type, choices, isRequired }: Field): [texts: string[], value: unknown] {
  switch (type) {
    case 'number':
      return [['7'], 7]
    case 'boolean':
      return [isRequired ? ['on'] : [], true]
    case 'list':
      return choices ? [[choices.slice(0, 2).join()], choices.slice(0, 2)] : [['one'], ['one']]
    case 'map':
      return [[`${choices![1]!}=${ownFile}`], { [choices![1]!]: '{"a":1}' }]
    case 'text':
      return [[choices?.[0] ?? 'text'], choices?.[0] ?? 'text']
  }
}

test('property: what is given by a flag is the field that the operation’s schema takes', async () => {
  let count = 0
  for (const operation of operations) {
    const { flags = {}, method, command: words } = operation
    if (words === null) continue
    for (const field of fieldsOf(operation)) {
      const flag = flagOf(field, flags)
      if (flag === null) continue
      const [typed, expected] = sample(field)
      const isNegative = flags[field.name]?.startsWith('!') ?? false
      const isSwitch = field.type === 'boolean' && (isNegative || field.fallback !== undefined)
      const texts = isSwitch ? [] : field.type === 'boolean' ? ['on'] : typed
      const command = new Command('test').exitOverride()
      addFlags(command, [{ ...field, isRequired: false }], flags, method === 'PATCH')
      await command.parseAsync([flag, ...texts], { from: 'user' })
      const given = givenFields(command.opts(), [field], flags)
      assert.deepEqual(
        given[field.place],
        { [field.name]: isNegative ? false : expected },
        `${words} ${flag}`,
      )
      if (field.isNullable && method === 'PATCH') {
        const taking = new Command('test').exitOverride()
        addFlags(taking, [{ ...field, isRequired: false }], flags, true)
        await taking.parseAsync([flag.replace('--', '--no-')], { from: 'user' })
        assert.deepEqual(givenFields(taking.opts(), [field], flags)[field.place], { [field.name]: null })
      }
      count++
    }
  }
  assert.ok(count > 60, `${count} flags`)
})

test('a flag that is not given is no field: the operation’s own defaults hold', () => {
  for (const operation of operations) {
    if (operation.command === null) continue
    const command = new Command('test')
    const fields = fieldsOf(operation)
    addFlags(command, fields, operation.flags ?? {}, operation.method === 'PATCH')
    assert.deepEqual(givenFields(command.opts(), fields, operation.flags ?? {}), { query: {}, body: {} })
    if (!operation.query) continue
    const needed = fields.filter(({ place, isRequired }) => place === 'query' && isRequired)
    const query = Object.fromEntries(needed.map((field) => [field.name, sample(field)[1]]))
    checked(
      { ...operation, body: undefined as never, params: undefined as never },
      { params: {}, query, body: undefined },
    )
  }
})
