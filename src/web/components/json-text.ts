// JSON as the text that it is: parsing it and writing it again would change numbers that a double cannot hold.

const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s"{}[\],:]+/g
/** What is nested deeper is not indented further: lines would grow with the square of the text. */
const maxIndented = 40

/** JSON text on several lines, in which only white space is added; null for text that is no JSON. */
export function indented(text: string): string | null {
  if (!isJson(text)) return null
  let depth = 0
  let before = ''
  const parts: string[] = []
  const line = () => parts.push('\n', '  '.repeat(Math.min(depth, maxIndented)))
  for (const [token] of text.matchAll(tokens)) {
    if (token === '}' || token === ']') {
      depth--
      if (before !== '{' && before !== '[') line()
    } else if (before === '{' || before === '[') line()
    parts.push(token)
    if (token === '{' || token === '[') depth++
    if (token === ',') line()
    if (token === ':') parts.push(' ')
    before = token
  }
  return parts.join('')
}

/** The members of a JSON object as their texts, by key. `text` must be JSON. */
export function membersOf(text: string): Map<string, string> {
  const members = new Map<string, string>()
  let depth = 0
  let key: string | null = null
  let start = -1
  for (const { 0: token, index } of text.matchAll(tokens)) {
    const isEnd = (token === ',' && depth === 1) || (token === '}' && depth === 1)
    if (isEnd && key !== null) {
      members.set(key, text.slice(start, index).trim())
      key = null
    } else if (depth === 1 && key === null && token.startsWith('"')) key = JSON.parse(token) as string
    else if (depth === 1 && token === ':' && start < 0) start = index + 1
    if (token === '{' || token === '[') depth++
    if (token === '}' || token === ']') depth--
    if (isEnd) start = -1
  }
  return members
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
