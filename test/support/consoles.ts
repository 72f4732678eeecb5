import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import pino from 'pino'
import { contextOf } from '../../src/cli/context.ts'
import { openConsole, type OpenConsoleOptions } from '../../src/cli/open-console.ts'
import { type Deployment, type LogLine } from './deployment/deployment.ts'
import { until } from './until.ts'
import { silentLog } from './silent-log.ts'

export const adminToken = 'a-token-that-nobody-guesses-0123456789'

export interface ApiAnswer {
  status: number
  headers: Headers
  /** Parsed; the lines of NDJSON as an array. */
  body: Record<string, unknown>
  text: string
}

export interface ApiCall {
  headers?: Record<string, string>
  /** Sent as JSON. */
  json?: unknown
  /** Sent as it is. */
  body?: string | Uint8Array | ReadableStream
}

export interface RunningConsole {
  url: string
  open: ReturnType<typeof openConsole>
  log: LogLine[]
  /** Null when it takes work. */
  problem(): string | null
  /** What does not keep it from work. */
  warning(): string | null
  /**
   * Calls a path below /api/v1 with the token, once it has read what the test has written into the settings; the answer is
   * checked by the console's own OpenAPI document.
   */
  call(method: string, path: string, given?: ApiCall): Promise<ApiAnswer>
  /** As `call`, and asserts the status. */
  ok(status: number, method: string, path: string, json?: unknown): Promise<Record<string, unknown>>
  /** Stops it in good order; rejects with what it failed with. */
  stop(): Promise<void>
}

/** Starts a console in this process, with a store of its own, and waits until it takes work. */
export async function startConsole(
  deployment: Deployment,
  options: Partial<OpenConsoleOptions> = {},
): Promise<RunningConsole> {
  const lines: LogLine[] = []
  const log = pino({ level: 'debug' }, { write: (line) => void lines.push(JSON.parse(line) as LogLine) })
  const storePath = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  const config = { ...deployment.config, consolePort: 0, adminToken, storePath, ...options.config }
  const open = openConsole({
    ...contextOf({ config, log }, silentLog),
    host: '127.0.0.1',
    // A few consumers more for each console: only where a test is about them.
    operationalEvents: null,
    ...options,
    config,
  })
  const stopping = new AbortController()
  const ended = open.part.run(stopping.signal)
  let failure: unknown = null
  ended.catch((error: unknown) => (failure = error))
  const stop = async () => {
    stopping.abort()
    await ended.finally(() => rm(storePath, { recursive: true, force: true, maxRetries: 5 }))
  }
  deployment.endFirst(stop)
  const problem = () => open.checks.map((check) => check.problem()).find((found) => found !== null) ?? null
  const warning = () =>
    open.checks.map((check) => check.warning?.() ?? null).find((found) => found !== null) ?? null
  const url = `http://127.0.0.1:${await open.listening}`
  await until(() => {
    if (failure) throw failure as Error
    return problem() === null
  }, 30_000)
  const documented = await answersOf(url)
  /** A console reads a moment later what others write into the settings, which a test does without it. */
  const knowsSettings = () =>
    problem() !== null || open.report.settingsVersion!() >= deployment.settings.state.version
  const call = async (method: string, path: string, given: ApiCall = {}): Promise<ApiAnswer> => {
    if (!knowsSettings()) await until(knowsSettings, 30_000, 'that the console has read the settings')
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${adminToken}`,
        ...(given.json !== undefined && { 'content-type': 'application/json' }),
        ...given.headers,
      },
      ...(given.json !== undefined && { body: JSON.stringify(given.json) }),
      // Node's own types lag behind what fetch takes.
      ...(given.body !== undefined && { body: given.body, duplex: 'half' }),
    } as RequestInit)
    const text = await response.text()
    documented(method, path, response, text)
    const isLines = response.headers.get('content-type')?.startsWith('application/x-ndjson')
    const body: unknown = isLines
      ? text
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as unknown)
      : JSON.parse(text)
    return { status: response.status, headers: response.headers, body: body as ApiAnswer['body'], text }
  }
  return {
    url,
    open,
    log: lines,
    problem,
    warning,
    call,
    async ok(status, method, path, json) {
      const answer = await call(method, path, json === undefined ? {} : { json })
      assert.equal(answer.status, status, answer.text)
      return answer.body
    },
    stop,
  }
}

interface Content {
  schema: object
}
type Document = Record<
  string,
  Record<string, Record<string, { responses: Record<string, { content: Record<string, Content> }> }>>
>

type Documented = (method: string, path: string, response: Response, text: string) => void

/** Consoles of one process have the same document; making it takes more than most of what is asked of one. */
let known: Promise<Documented> | null = null

/** Asserts that an answer is one that the console's document promises. What the document does not know must be 404 or 405. */
function answersOf(url: string): Promise<Documented> {
  const read = async () => {
    const response = await fetch(`${url}/api/v1/openapi.json`)
    return documentedBy((await response.json()) as Document)
  }
  known ??= read().catch((error: unknown) => {
    known = null
    throw error
  })
  return known
}

function documentedBy(document: Document): Documented {
  const ajv = new Ajv2020.default({ strict: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addSchema(document, 'api')
  // Compiling one takes a hundred times as long as a request.
  const compiled = new Map<string, ValidateFunction>()
  const paths = Object.entries(document.paths!)
  const specificity = (path: string) => path.split('{').length
  paths.sort(([a], [b]) => specificity(a) - specificity(b))
  return (method, path, response, text) => {
    const { pathname } = new URL(`/api/v1${path}`, 'http://console')
    const [template, operations] =
      paths.find(([template]) => new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`).test(pathname)) ??
      []
    const operation = operations?.[method.toLowerCase()]
    const label = `${method} ${path} ${response.status}`
    if (!template || !operation) return assert.ok([401, 404, 405].includes(response.status), label)
    const type = response.headers.get('content-type')!.split(';')[0]!
    assert.ok(
      operation.responses[response.status]?.content[type],
      `${label} ${type} is not in the document: ${text}`,
    )
    const escaped = template.replaceAll('~', '~0').replaceAll('/', '~1')
    const pointer = `api#/paths/${escaped}/${method.toLowerCase()}/responses/${response.status}/content/${type.replaceAll('/', '~1')}/schema`
    let validate = compiled.get(pointer)
    if (!validate) {
      validate = ajv.compile({ $ref: encodeURI(pointer).replaceAll('%23', '#') })
      compiled.set(pointer, validate)
    }
    const parts = type === 'application/x-ndjson' ? text.trim().split('\n') : [text]
    for (const part of parts)
      assert.ok(validate(JSON.parse(part)), `${label}: ${ajv.errorsText(validate.errors)} in ${part}`)
  }
}
