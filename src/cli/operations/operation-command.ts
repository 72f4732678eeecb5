// A command for each operation of the admin API: its flags are the fields, and its handler runs in this process.
import { Command } from 'commander'
import { stringify } from 'yaml'
import { fieldsOf, type Field } from '../../operators/fields.ts'
import type { Operation } from '../../operators/operation.ts'
import { runAction } from '../context.ts'
import { flagError, type JsonFlag } from '../flags.ts'
import { io } from '../io.ts'
import {
  print,
  printable,
  printAside,
  printJson,
  table,
  withProgress,
  type ProgressBar,
} from '../terminal.ts'
import { addFlags, flagOf, givenFields } from './flags-of-fields.ts'
import {
  perform,
  type AskedOperation,
  type OperationOptions,
  inSession,
  refuseWrongValues,
  type CommandSession,
} from './session.ts'

export type Options = Readonly<Record<string, unknown>>

type Read = (session: CommandSession) => Partial<AskedOperation> | Promise<Partial<AskedOperation>>

/** What a command has beside what its operation says. */
export interface CommandShape {
  /** It works without the settings, and so where Kafka is away. */
  isWithoutSettings?: boolean
  /** In place of the operation's. */
  summary?: string
  description?: string
  /** Flags in place of those of the operation's fields; what they are given is for `read` alone. */
  fields?: readonly Field[]
  /** What people call fields that have no flag of their own. */
  names?: Readonly<Record<string, string>>
  /** Flags and arguments in place of fields. */
  addFlags?(command: Command): void
  /**
   * What they ask for, beside the fields. Called before anything is connected, so that wrong usage is said without Kafka;
   * what it returns, once the settings are read.
   */
  read?(options: Options, args: readonly string[]): Read | Promise<Read>
  /** In place of performing it once and printing the answer. */
  run?(asked: AskedOperation, session: CommandSession, options: Options): Promise<void>
  /** An item of a list, in place of a row. */
  item?(item: never): string
  /** A list's columns. */
  row?: { headings: readonly string[]; of(item: never): (string | number)[] }
  /** It comes the newest first, and is shown to people the newest last. */
  isNewestFirst?: boolean
  /** What a list without any is. */
  none?: string
  /** What --json prints of an answer. */
  json?(body: never): unknown
  /** All of an answer, for people. */
  text?(body: never, session: CommandSession): string
  /** The operation's error in the words of the command. */
  explained?(error: unknown): unknown
  /** Whether the command has failed all the same: exit code 1, and what is said of it. */
  hasFailed?(body: never): boolean | string
}

/** As many of a list as a person reads. */
const defaultLimit = 50
const pageLimit = 200

const isList = ({ query }: Operation): boolean => query !== undefined && 'cursor' in query.shape
/** What a list's flags are in place of. */
const pageFields = ['limit', 'cursor']

const fieldsIn = (operation: Operation): Field[] =>
  fieldsOf(operation).filter(({ name }) => !isList(operation) || !pageFields.includes(name))

const paramsOf = ({ params }: Operation): [name: string, text: string][] =>
  Object.entries(params?.shape ?? {}).map(([name, schema]) => [name, schema.description ?? ''])

/** @param words of the command, where the operation has several */
export function operationCommand(
  operation: Operation,
  shape: CommandShape = {},
  words = operation.command!,
): Command {
  const { flags = {}, method } = operation
  const { summary = operation.summary } = shape
  const description = shape.description ?? [`${summary}.`, operation.description].filter(Boolean).join(' ')
  const command = new Command(words.split(' ').at(-1)).summary(summary).description(description)
  const params = paramsOf(operation)
  for (const [name, text] of params) command.argument(`<${name}>`, text)
  const fields = shape.fields ?? fieldsIn(operation)
  addFlags(command, fields, flags, method === 'PATCH')
  shape.addFlags?.(command)
  if (isList(operation))
    command.option('--limit <count>', `how many (default: ${defaultLimit}; with --json all)`)
  command.option('--json', isList(operation) ? 'one JSON object a line' : 'as JSON')
  return command.action(
    runAction(async (...given: unknown[]) => {
      const args = given.slice(0, command.registeredArguments.length) as string[]
      const options: Options = command.opts()
      const asked = {
        params: Object.fromEntries(params.map(([name], index) => [name, args[index]!])),
        ...givenFields(options, shape.fields ? [] : fields, flags),
      }
      refuseWrongValues(operation, asked, namesOf(operation, shape))
      const own = await shape.read?.(options, args)
      const limit = isList(operation) ? limitOf(options) : null
      // What finds out why the settings hold must not be held itself.
      const whenHeld = shape.isWithoutSettings ? 'unread' : method === 'GET' ? 'look' : 'fail'
      const work = async (session: CommandSession) => {
        if (whenHeld === 'look') noteHeld(session)
        const more = (await own?.(session)) ?? {}
        const body = more.body === undefined ? asked.body : { ...asked.body, ...(more.body as object) }
        const whole = { ...asked, ...more, body, query: { ...asked.query, ...more.query } }
        if (shape.run) await shape.run(whole, session, options)
        else await run(operation, shape, whole, { session, limit, json: (options as JsonFlag).json ?? false })
      }
      await inSession(command, work, whenHeld)
    }),
  )
}

/** The settings are shown as they were before what this version cannot read. */
export function noteHeld({ settings }: CommandSession): void {
  if (settings.heldAt !== null) printAside(`postrider: ${settings.problem}`)
}

interface Running {
  session: CommandSession
  limit: number | null
  json: boolean
}

async function run(
  operation: Operation,
  shape: CommandShape,
  asked: AskedOperation,
  given: Running,
): Promise<void> {
  const { session, json } = given
  if (isList(operation)) return printList(operation, ...forPeople(operation, shape, asked, json), given)
  const body = await performed(operation, asked, session, shape)
  if (json) printJson(shape.json ? shape.json(body as never) : body)
  else print(shape.text?.(body as never, session) ?? textOf(body))
  const failure = shape.hasFailed?.(body as never) ?? false
  if (failure !== false) io().exitCode = 1
  if (typeof failure === 'string') printAside(`postrider: ${failure}`)
}

/** Of a list that can be had in both orders, people are shown the newest, unless they ask for an order. */
function forPeople(
  { query }: Operation,
  shape: CommandShape,
  asked: AskedOperation,
  json: boolean,
): [shape: CommandShape, asked: AskedOperation] {
  if (json || !('order' in query!.shape) || asked.query?.order !== undefined) return [shape, asked]
  return [
    { ...shape, isNewestFirst: true },
    { ...asked, query: { ...asked.query, order: 'newest' } },
  ]
}

/** The answer of an operation in this process, with its progress on the terminal. @param also told of it */
export const performed = (
  operation: Operation,
  asked: AskedOperation,
  session: CommandSession,
  shape: CommandShape = {},
  also: (state: object) => void = () => {},
): Promise<unknown> =>
  withProgress((bar) => {
    const shown = shownOn(bar)
    const onProgress = (state: object): void => {
      also(state)
      shown(state)
    }
    return perform(operation, asked, { ...optionsOf(operation, session, shape), onProgress })
  }).catch((error: unknown) => {
    throw shape.explained?.(error) ?? error
  })

export const optionsOf = (
  operation: Operation,
  { services, signal }: CommandSession,
  shape: CommandShape,
): OperationOptions => ({ services, signal, nameOf: namesOf(operation, shape) })

function namesOf(operation: Operation, { names = {} }: CommandShape): OperationOptions['nameOf'] {
  const flags = new Map(
    fieldsOf(operation).map((field) => [field.name, flagOf(field, operation.flags ?? {})]),
  )
  return (field) => {
    const name = field.split('.')[0]!
    return flags.get(name) ?? names[name] ?? field
  }
}

interface Page {
  data: object[]
  next: string | null
}

/** Page after page; as JSON at once, so that a list may be long. */
async function printList(
  operation: Operation,
  shape: CommandShape,
  asked: AskedOperation,
  { session, limit, json }: Running,
): Promise<void> {
  const most = limit ?? (json ? Infinity : defaultLimit)
  const items: object[] = []
  let count = 0
  let cursor: string | null = null
  do {
    const page: object = { limit: Math.min(pageLimit, most - count), ...(cursor !== null && { cursor }) }
    const { data, next } = (await performed(
      operation,
      { ...asked, query: { ...asked.query, ...page } },
      session,
      shape,
    )) as Page
    count += data.length
    if (json) data.forEach(printJson)
    else items.push(...data)
    cursor = next
  } while (cursor !== null && count < most)
  if (json) return
  if (items.length === 0) print(shape.none ?? 'there is none')
  else print(tableOf(shape.isNewestFirst ? items.reverse() : items, shape))
  const which = shape.isNewestFirst ? 'newest' : 'first'
  if (cursor !== null) printAside(`the ${which} ${count}; --limit shows more`)
}

function limitOf({ limit }: Options): number | null {
  if (limit === undefined) return null
  if (/^[1-9]\d{0,6}$/.test(String(limit))) return Number(limit)
  throw flagError('--limit', String(limit), 'a whole number from 1 to 9999999')
}

/** By its columns, or by all fields that fit into a cell. */
function tableOf(items: readonly object[], { row, item }: CommandShape): string {
  if (item) return items.map((each) => item(each as never)).join('\n')
  if (row)
    return table(
      row.headings,
      items.map((item) => row.of(item as never)),
    )
  const names = Object.keys(items[0]!).filter((name) => items.every((item) => isCell(valueOf(item, name))))
  return table(
    names.map((name) => name.replace(/[A-Z]/g, ' $&')),
    items.map((item) => names.map((name) => cellOf(valueOf(item, name)))),
  )
}

const valueOf = (item: object, name: string): unknown => (item as Record<string, unknown>)[name]

const isCell = (value: unknown): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (Array.isArray(value) && value.every((each) => typeof each === 'string'))

function cellOf(value: unknown): string | number {
  if (typeof value === 'number') return value
  if (Array.isArray(value)) return value.join(', ') || '-'
  return value === null || value === undefined ? '-' : String(value)
}

/** For people: as YAML. */
const textOf = (body: unknown): string =>
  stringify(body, { lineWidth: 0 }).trimEnd().split('\n').map(printable).join('\n')

/** Between two lines where there is no terminal to draw a bar on. */
const lineEveryMs = 5_000
/** Short work is not worth a bar. */
const minTotal = 1_000

interface Progress {
  phase?: string
  done?: number
  looked?: number
  total: number | null
}

/** The progress of an operation, on the bar or in lines on stderr. */
export function shownOn(bar: ProgressBar): (state: object) => void {
  let reportedAt = performance.now()
  return (state) => {
    const { phase = 'reading', done, looked, total } = state as Progress
    const value = done ?? looked ?? 0
    if (total !== null && total < minTotal) return
    const format =
      total === null
        ? `${phase}: {value}, {duration_formatted}`
        : `${phase}: {bar} {percentage}%  {value} of {total}, {eta_formatted} left`
    bar.show(format, value, total ?? 0)
    if (bar.isShown || performance.now() - reportedAt < lineEveryMs) return
    reportedAt = performance.now()
    printAside(`${phase}: ${value}${total === null ? '' : ` of ${total}`}`)
  }
}
