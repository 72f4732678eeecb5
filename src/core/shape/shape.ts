import type { AnalyticsCall } from '../call/analytics-call.ts'
import { renderBody } from '../call/body.ts'
import { redacted, redactionOf, type Redaction } from '../call/redaction.ts'
import { tooManySteps, type ValueExpression } from '../expression/call-expression.ts'
import { CallValues } from '../expression/call-values.ts'
import { OutOfSteps, Run, type Surroundings } from '../expression/evaluation.ts'
import type { DestinationOptions } from '../settings/destination-options.ts'
import type { Destination } from '../settings/settings.ts'
import { compileBody, type BodyTemplate } from './body-template.ts'
import { formOf } from './form.ts'
import { fullBody } from './full-body.ts'
import { filledPath, parseRequestUrl } from './request-url.ts'
import { secretHole, secretIn, withSecretsIn } from './secret-holes.ts'
import {
  absent,
  attemptHole,
  hasHoles,
  holesOf,
  namesAttempt,
  parseTemplate,
  textOf,
  valueIn,
  Unrenderable,
  valueOf,
  type Fillable,
  type Filled,
  type TextTemplate,
} from './text-template.ts'

/** What one call's requests to a destination are made of. */
export interface Rendered {
  body: string
  /** Null where neither URLs nor headers have holes, and the body has no secrets. */
  filled: Filled | null
}

/** Of a destination: all that says what its requests look like. */
export type Shaped = Pick<Destination, 'id' | 'name'> & {
  options: Pick<DestinationOptions, 'drop' | 'body' | 'format' | 'contentType'>
  urls: readonly {
    id: string
    url: string
    headers: readonly { holes?: readonly string[] | undefined }[]
  }[]
}

/** The most characters of a header that one hole fills. */
const maxHeaderValueLength = 4_096
/** What may be in one line of a head, in Latin-1 (RFC 9110, 5.5). */
const inOneLine = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * What a destination's requests are made of: its calls without what it does not get, in the documents' body or in its own,
 * with what stands in the holes of URLs and headers. A pure function of a call.
 */
export class Shape {
  readonly #about: { id: string; name: string }
  readonly #sha256: Surroundings['sha256']
  readonly #redaction: Redaction | null
  readonly #bodies: ReadonlyMap<string, BodyTemplate>
  readonly #isFull: boolean
  readonly #isForm: boolean
  readonly #paths: readonly Fillable[]
  readonly #pathHoles: readonly ValueExpression[]
  readonly #headerHoles: readonly ValueExpression[]
  readonly #fills: boolean
  /** Of all of its bodies. */
  readonly secrets: readonly string[]
  /** Nothing of it depends on the destination: what is rendered for one such is for all. */
  readonly isCommon: boolean

  /**
   * Throws for what no command would have written.
   *
   * @param urlId where the URL's deliveries are its own, so that what another URL needs is nothing to it
   */
  constructor(
    { id, name, urls: all, options }: Shaped,
    sha256: Surroundings['sha256'],
    urlId: string | null = null,
  ) {
    const urls = urlId === null ? all : all.filter((url) => url.id === urlId)
    this.#about = { id, name }
    this.#sha256 = sha256
    this.#redaction = redactionOf(options.drop)
    this.#bodies = new Map(Object.entries(options.body ?? {}).map(([type, text]) => [type, bodyOf(text)]))
    this.#isFull = options.format === 'full'
    this.#isForm = options.contentType === 'form'
    this.secrets = [...new Set([...this.#bodies.values()].flatMap((body) => body.secrets))]
    const paths = urls.flatMap(({ url }) => pathOf(url) ?? [])
    // No secret is "." or "..".
    this.#paths = paths.map((path) => withSecretsIn(path, (name) => name))
    this.#pathHoles = distinct(paths.flatMap(holesOf))
    this.#headerHoles = distinct(
      urls.flatMap(({ headers }) => headers.flatMap(({ holes = [] }) => holes.map(holeOf))),
    )
    this.#fills = this.#pathHoles.length > 0 || this.#headerHoles.length > 0
    const isOwn = this.#redaction !== null || this.#bodies.size > 0 || this.#isFull || this.#isForm
    this.isCommon = !isOwn && !this.#fills
  }

  /**
   * Of a call that `checkCall` has accepted. Throws Unrenderable where the call has no value that is needed, or none that
   * can stand where it is to.
   */
  render(call: AnalyticsCall, deliveryId: string): Rendered {
    const left = this.#redaction === null ? call : redacted(call, this.#redaction)
    const template = this.#templateFor(call.type)
    if (template === undefined && !this.#fills)
      return { body: this.#encoded(this.#ownBody(left), false), filled: null }
    const around = { delivery: { id: deliveryId }, destination: this.#about, sha256: this.#sha256 }
    const run = new Run(new CallValues(left), around)
    try {
      const body = template === undefined ? this.#ownBody(left) : template.render(run)
      const secrets = template?.secrets ?? []
      return {
        body: this.#encoded(body, secrets.length > 0),
        filled: withSecretNames(this.#filled(run), secrets),
      }
    } catch (error) {
      throw error instanceof OutOfSteps ? new Unrenderable(tooManySteps) : error
    }
  }

  /** A deletion request is what it is, unless somebody says how it is to look. */
  #templateFor(type: AnalyticsCall['type']): BodyTemplate | undefined {
    return this.#bodies.get(type) ?? (type === 'delete' ? undefined : this.#bodies.get('all'))
  }

  #ownBody(call: AnalyticsCall): string {
    return this.#isFull && call.type !== 'delete' ? fullBody(call) : renderBody(call)
  }

  #encoded(json: string, hasSecrets: boolean): string {
    return this.#isForm ? formOf(json, hasSecrets) : json
  }

  #filled(run: Run): Filled | null {
    if (!this.#fills) return null
    const filled: { hole: string; value: string }[] = []
    for (const hole of this.#headerHoles) {
      if (hole.text === attemptHole) continue
      const value = valueOf(hole, run)
      if (value === absent) continue
      const text = textOf(hole, value, run)
      if (text.length > maxHeaderValueLength)
        throw new Unrenderable(
          `${hole.text}: a value in a header has at most ${maxHeaderValueLength} characters`,
        )
      if (!inOneLine.test(text))
        throw new Unrenderable(
          `${hole.text}: its value has a line end, or a character that no header can have`,
        )
      filled.push({ hole: hole.text, value: text })
    }
    for (const hole of this.#pathHoles)
      if (hole.text !== attemptHole && valueIn(filled, hole.text) === undefined)
        filled.push({ hole: hole.text, value: textOf(hole, valueOf(hole, run), run) })
    for (const path of this.#paths) filledPath(path, filled, 1)
    return filled
  }
}

const pathOf = (url: string): TextTemplate | null =>
  hasHoles(url) ? (parseRequestUrl(url)?.url?.path ?? null) : null

function bodyOf(text: string): BodyTemplate {
  const { body, fault } = compileBody(text)
  if (fault !== null) throw new Error(`what stands as its body ${fault}`)
  return body
}

function holeOf(text: string): ValueExpression {
  const { template, fault } = parseTemplate(`\${${text}}`)
  if (fault !== null) throw new Error(`what stands as a hole of a header is none: ${fault}`)
  return holesOf(template)[0]!
}

/** Those of a call. A secret is filled in when the request goes out, and its value is not known here. */
const distinct = (holes: readonly ValueExpression[]): ValueExpression[] =>
  [...new Map(holes.map((hole) => [hole.text, hole])).values()].filter(({ text }) => secretIn(text) === null)

/**
 * Which secrets the body has travels with it: only these are filled in, so that in a body that was made without any nothing is
 * taken for one.
 */
const withSecretNames = (filled: Filled | null, secrets: readonly string[]): Filled | null =>
  secrets.length === 0
    ? filled
    : [...(filled ?? []), ...secrets.map((name) => ({ hole: secretHole(name), value: '' }))]

/** What is wrong with the template of a body, one phrase a fault. */
export function bodyFaults(text: string): string[] {
  const { body, fault } = compileBody(text)
  if (fault !== null) return [fault]
  return body.holes.some((hole) => namesAttempt.test(hole.text))
    ? [`names ${attemptHole}, but the body is the same at every attempt: use it in a header`]
    : []
}

/** That of most destinations. */
export const documentsShape = new Shape(
  {
    id: '',
    name: '',
    urls: [],
    options: { drop: null, body: null, format: 'documents', contentType: 'json' },
  },
  () => '',
)

/** The shape of a destination, or of one of its URLs: most have nothing of their own, and share one. Throws as Shape does. */
export function shapeOf(
  destination: Shaped,
  sha256: Surroundings['sha256'],
  urlId: string | null = null,
): Shape {
  const { urls, options } = destination
  const { drop, body, format, contentType } = options
  const isPlain = drop === null && body === null && format === 'documents' && contentType === 'json'
  const fills = urls.some(
    ({ url, headers }) => hasHoles(url) || headers.some(({ holes = [] }) => holes.length > 0),
  )
  return isPlain && !fills ? documentsShape : new Shape(destination, sha256, urlId)
}
