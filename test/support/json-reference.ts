import { runInThisContext } from 'node:vm'

const strings = /("(?:[^"\\]|\\.)*")(\s*:)?/gs

/**
 * What JSON.parse should give. V8 takes a key with an escape for one with a backslash that stood at the same place in any
 * text before (nodejs/node#63785), and the tests of one process share such places. As JavaScript the same text is read
 * right. Throws a SyntaxError for what is not JSON.
 */
export function parsedJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (!text.includes('\\')) return value
  // A key in brackets is one also where it is `__proto__`.
  const literal = text.replace(strings, (_, string: string, colon?: string) =>
    colon === undefined ? string : `[${string}]${colon}`,
  )
  return runInThisContext(`(${literal})`)
}
