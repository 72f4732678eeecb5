import { urlFaults } from '../delivery/endpoint-url.ts'
import {
  holeFaults,
  hasHoles,
  parseTemplate,
  attemptHole,
  Unrenderable,
  valueIn,
  type Fillable,
  type Filled,
  type TextTemplate,
} from './text-template.ts'

/** A destination's URL: where its requests go, and what they ask for there. */
export interface RequestUrl {
  /** Without its holes: scheme, host and port are those of every request. */
  readonly base: URL
  /** The path with its query; null where it has no holes. */
  readonly path: TextTemplate | null
}

/** Only where a path has begun may a hole stand: limits, addresses and breakers are those of an endpoint. */
const beforePath = /^https?:\/\/[^/?#]*[/?]/i
/** What stands for a hole while the URL is parsed: it means nothing in any part of one. */
const standIn = (text: string): string => {
  let name = 'hole'
  while (text.includes(name)) name += 'e'
  return name
}

/** The URL, or what is wrong with its holes; null where it is no URL at all. */
export function parseRequestUrl(
  text: string,
): { url: RequestUrl; fault: null } | { url: null; fault: string } | null {
  if (!hasHoles(text)) {
    const base = URL.parse(text)
    return base && { url: { base, path: null }, fault: null }
  }
  const { template, fault } = parseTemplate(text)
  if (fault !== null) return { url: null, fault: `has a fault: ${fault}` }
  const [first] = template.parts
  if (typeof first !== 'string' || !beforePath.test(first))
    return { url: null, fault: 'has a hole before its path: only the path and the query may have holes' }
  const stand = standIn(text)
  const base = URL.parse(template.parts.map((part) => (typeof part === 'string' ? part : stand)).join(''))
  if (base === null) return null
  const literals = (base.pathname + base.search).split(stand)
  const holes = template.parts.filter((part) => typeof part !== 'string')
  // A hole in the fragment is not sent.
  const parts = literals.flatMap((literal, index) => (index === 0 ? [literal] : [holes[index - 1]!, literal]))
  return { url: { base, path: { parts: parts.filter((part) => part !== '') } }, fault: null }
}

/** Every hole of a URL must have a value, and none may be longer than this: servers refuse long ones. */
const maxValueLength = 2_048

/**
 * The path of a request. Values are percent-encoded whole, so that none can add a part to the path or to the query.
 * Throws Unrenderable where one is missing, or where the path would lead elsewhere.
 *
 * @param attempt from 1
 */
export function filledPath({ parts }: Fillable, filled: Filled, attempt: number): string {
  let path = ''
  for (const part of parts) {
    if (typeof part === 'string') path += part
    else {
      const value = part.text === attemptHole ? String(attempt) : valueIn(filled, part.text)
      if (value === undefined || value === '')
        throw new Unrenderable(`${part.text}: the call has no such value, and the URL needs one`)
      if (value.length > maxValueLength)
        throw new Unrenderable(`${part.text}: a value in a URL has at most ${maxValueLength} characters`)
      path += encodeURIComponent(value.toWellFormed())
    }
  }
  // Servers resolve these (RFC 3986, 5.2.4), and so a value would lead out of its part of the path.
  if (path.split('?', 1)[0]!.split('/').some(isDots))
    throw new Unrenderable('a value makes a part of the path "." or ".."')
  return path
}

const isDots = (segment: string): boolean => /^(?:\.|%2e){1,2}$/i.test(segment)

/** What is wrong with a URL that may have holes (docs/destinations.md), one phrase a fault. */
export function requestUrlFaults(text: string): string[] {
  if (!hasHoles(text)) return urlFaults(text)
  const parsed = parseRequestUrl(text)
  if (parsed?.fault) return [parsed.fault]
  const { template } = parseTemplate(text)
  const stand = standIn(text)
  const literal = template?.parts.map((part) => (typeof part === 'string' ? part : stand)).join('') ?? text
  return [...urlFaults(literal), ...holeFaults(text)]
}
