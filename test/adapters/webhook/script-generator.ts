import fc from 'fast-check'
import { mutated, response } from './responses.ts'
import { simple, type Ending, type Script, type Secure, type Step } from './scripted-server.ts'

/** Numbers from a seed: from 0 to below `below`. */
type Random = (below: number) => number

/** Marsaglia's xorshift, behind a step that spreads seeds which lie close together. */
function randomOf(seed: number): Random {
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ (seed >>> 13) || 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

interface Pool {
  valid: readonly string[]
  mutated: readonly string[]
}

/** Scripts whose seeds share these bits share their responses, which take longer to make than scripts. */
const seedsPerPool = 4_096
let pool: Pool = { valid: [], mutated: [] }
let poolNumber = -1

function poolOf(seed: number): Pool {
  const number = Math.floor(seed / seedsPerPool)
  if (number === poolNumber) return pool
  poolNumber = number
  pool = {
    valid: fc.sample(response, { seed: number, numRuns: 300 }).map(({ text }) => text),
    mutated: fc.sample(mutated, { seed: number, numRuns: 900 }),
  }
  return pool
}

/**
 * Statuses say to what they belong: their remainder by 8 is that of the request's number by 6. Stray pieces and what is
 * unasked have the other two.
 */
const kinds = 8
const stray = -2
const unasked = -1
const unaskedStatus = 207

const anyStatusLine = /(HTTP\/\d\.\d )([2-9]\d\d)/g

/** The same text with statuses of a kind; 204 and 304 stay what they are, since their bodies differ. */
function marked(text: string, number: number, random: Random): string {
  const kind = number < 0 ? kinds + number : number % (kinds - 2)
  return text.replace(anyStatusLine, (line, begin: string, status: string) => {
    if (status === '204' || status === '304') return line
    const chosen = 200 + kinds * random(random(2) ? 100 : 4) + kind
    return begin + (chosen === 204 || chosen === 304 ? chosen + kinds : chosen)
  })
}

const pick = <T>(random: Random, from: readonly T[]): T => from[random(from.length)]!

const large = [16_384, 16_385, 32_768, 65_536, 70_000]

/** A response of exactly `size` bytes. */
function sized(size: number): string {
  const start = `HTTP/1.1 200 -\r\nContent-Length: ${size - 60}\r\nX: `
  return `${start}${'x'.repeat(60 - start.length - 4)}\r\n\r\n${'y'.repeat(size - 60)}`
}

function responseOf({ valid, mutated: malformed }: Pool, random: Random): string {
  const choice = random(100)
  if (choice < 60) return pick(random, valid)
  if (choice < 80) return pick(random, malformed)
  if (choice < 97) return simple(200, 'x'.repeat(random(30)))
  return choice < 99 ? sized(pick(random, large)) : ''
}

const interims = ['103 Early Hints', '102 Processing', '103 -', '100 Continue'].map(
  (line) => `HTTP/1.1 ${line}\r\n\r\n`,
)
const garbage = [
  '\r\n',
  '!',
  '\0',
  'HTTP/1.1 ',
  '0\r\n\r\n',
  '{"ok":true}',
  '\r\n\r\n',
  'x: y\r\n\r\n',
  '\n',
  ' ',
]

const prefix = (text: string, random: Random): string => text.slice(0, random(text.length + 1))

/** All that the server means as the answer to a request. */
function answerOf(responses: Pool, number: number, random: Random): string {
  const text = marked(responseOf(responses, random), number, random)
  const other = () => marked(responseOf(responses, random), stray, random)
  switch (random(30)) {
    case 0:
      return text + text
    case 1:
      return text + other()
    case 2:
      return text + prefix(other(), random)
    case 3:
      return prefix(text, random)
    case 4: {
      const at = random(text.length + 1)
      return text.slice(0, at) + prefix(other(), random) + text.slice(at)
    }
    case 5:
      return pick(random, interims).repeat(random(3) === 0 ? random(12) : 1) + text
    case 6:
      return text + pick(random, garbage)
    case 7:
      return pick(random, garbage) + text
    case 8:
      return ''
    default:
      return text
  }
}

function cutAt(text: string, random: Random): number[] {
  const choice = random(20)
  if (choice < 8 || text.length < 2) return []
  if (choice === 8 && text.length < 150) return [...Array(text.length - 1).keys()].map((at) => at + 1)
  if (choice < 12) {
    const ends = [...text.slice(0, 2_000).matchAll(/\r\n/g)].flatMap(({ index }) => [index + 1, index + 2])
    return ends.filter((at) => at < text.length && random(3) === 0).slice(0, 8)
  }
  const cuts = Array.from({ length: 1 + random(3) }, () => 1 + random(text.length - 1))
  return [...new Set(cuts)].sort((a, b) => a - b)
}

/** In bursts of segments or records. */
function bursts(text: string, random: Random): string[][] {
  if (text === '') return []
  const all: string[][] = [[]]
  const separate = random(3)
  let start = 0
  for (const cut of [...cutAt(text, random), text.length]) {
    all.at(-1)!.push(text.slice(start, cut))
    start = cut
    // Byte by byte with a turn for each would take long and show little.
    if (cut < text.length && (separate === 0 || random(4) === 0) && all.length < 6) all.push([])
  }
  return all
}

const endings: readonly Ending[] = ['keep', 'keep', 'fin', 'rst']

function unaskedOf(responses: Pool, random: Random): Step['unasked'] {
  if (random(6) > 0) return null
  const whole = marked(responseOf(responses, random), unasked, random)
  const text = pick(random, [
    whole,
    whole,
    simple(unaskedStatus),
    prefix(whole, random),
    pick(random, garbage),
    '',
  ])
  const end = text === '' ? pick(random, ['fin', 'rst'] as const) : pick(random, endings)
  // Over TLS, what is longer than a record goes out in several turns.
  return { when: pick(random, ['before', 'behind', 'seen'] as const), text: text.slice(0, 8_000), end }
}

const stepsPerScript = 16

/** The behaviour of a server, and what is sent to it. */
export function scriptOf(seed: number): Script {
  const random = randomOf(seed)
  const responses = poolOf(seed)
  const secureChoice = random(30)
  const secure: Secure = secureChoice === 0 ? 'TLSv1.2' : secureChoice === 1 ? 'TLSv1.3' : null
  const steps = Array.from({ length: 1 + random(stepsPerScript) }, (_, number): Step => {
    return {
      path: random(3),
      gap: random(2) * random(6),
      size: random(20) === 0 ? random(12_000) : random(20),
      unasked: number === 0 ? null : unaskedOf(responses, random),
      answer: bursts(answerOf(responses, number, random), random),
      end: pick(random, endings),
      endsAtOnce: random(8) === 0,
    }
  })
  const early = secure === null && random(10) === 0 ? simple(unaskedStatus) : ''
  return { secure, early, steps }
}
