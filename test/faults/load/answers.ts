import type { ServerResponse } from 'node:http'
import { isEighth, isPickedOut, stumbles, type Behaviour } from './destinations.ts'
import type { Random } from '../random.ts'
import { answerAgainAfter, answerTwice } from './unasked-answers.ts'

/** What a request got; whether it can have counted as success is the second word. */
export const answers = {
  ok: 'success',
  /** More bytes than Content-Length says: what it says is there. */
  tooLong: 'either',
  /** A whole response more than was asked for, right behind the one that was. */
  okAndMore: 'success',
  /** The same some ms later. */
  okAndLater: 'success',
  /** The response that nobody had asked for came just when this was written: no client can tell that it is not its own. */
  unknowable: 'either',
  /** Within the deadline, if the machine is not too busy. */
  slow: 'either',
  status500: 'failure',
  status503: 'failure',
  status429: 'failure',
  status400: 'failure',
  /** Its token is none that the receiver takes, or not any more. */
  status401: 'failure',
  redirect: 'failure',
  gone: 'failure',
  hang: 'failure',
  drip: 'failure',
  reset: 'failure',
  close: 'failure',
  garbage: 'failure',
  /** Fewer bytes than Content-Length says, then the end. */
  tooShort: 'failure',
  /** Of the body half was read, then the connection was reset. */
  cutRequest: 'failure',
  /** Half of the answer, then the connection was reset. */
  cutAnswer: 'failure',
  /** 503, for its name leads to another address. */
  movedAway: 'failure',
  /** 200, although its name leads to another address: a host that goes out of service bit by bit. */
  takenAway: 'success',
} as const
export type AnswerKind = keyof typeof answers
export const answerKinds = Object.keys(answers) as AnswerKind[]

const nonsense: readonly AnswerKind[] = [
  ...(['status503', 'status503', 'status503', 'status500', 'status429'] as const),
  ...(['hang', 'drip', 'reset', 'close', 'garbage', 'tooShort', 'tooLong', 'slow'] as const),
]

const failures: readonly AnswerKind[] = ['status500', 'status503']
const unasked: readonly AnswerKind[] = ['ok', 'okAndMore', 'okAndMore', 'okAndLater']

export const phaseMs = 30_000

/** What this URL answers now. `nowMs` counts from the receivers' start; */
export function chooseAnswer(
  behaviour: Behaviour,
  {
    seq,
    timesBefore,
    isFixed,
    isTokenGood,
    away,
    isUnknowable,
    nowMs,
    random,
  }: {
    seq: number
    /** How often it came before: counted of `fifth` and `stumbles`. */
    timesBefore: number
    isFixed: boolean
    /** Of `login`. */
    isTokenGood: boolean
    /** What an address answers that its name does not lead to any more; null: it does. */
    away: 'movedAway' | 'takenAway' | null
    isUnknowable: boolean
    nowMs: number
    random: Random
  },
): AnswerKind {
  if (isUnknowable) return 'unknowable'
  switch (behaviour) {
    case 'flaky':
      return random.chance(0.15) ? random.pick(nonsense) : 'ok'
    case 'phases':
      return Math.floor(nowMs / phaseMs) % 2 === 0 ? random.pick(['status503', 'reset', 'close']) : 'ok'
    case 'hangs':
      return 'hang'
    case 'fifth':
      return timesBefore === 0 && seq % 5 === 0 ? 'status503' : 'ok'
    case 'fixed':
      return isFixed ? 'ok' : 'status400'
    case 'picky':
      return isPickedOut(seq) ? 'status400' : 'ok'
    case 'unasked':
      return isEighth(seq) ? random.pick(failures) : random.pick(unasked)
    case 'victim':
      return isEighth(seq) ? random.pick(failures) : 'ok'
    case 'moving':
      return away ?? 'ok'
    case 'login':
      return isTokenGood ? 'ok' : 'status401'
    case 'cuts':
      return random.chance(0.15) ? 'cutAnswer' : 'ok'
    case 'stumbles':
      if (timesBefore < stumbles(seq)) return random.pick(['status503', 'status500', 'reset'])
      return random.chance(0.02) ? 'status503' : 'ok'
    case 'refuses':
      return 'status400'
    case 'redirects':
      return 'redirect'
    case 'gone':
      return 'gone'
    default:
      return 'ok'
  }
}

const statuses: Partial<Record<AnswerKind, number>> = {
  ok: 200,
  slow: 200,
  status500: 500,
  status503: 503,
  movedAway: 503,
  takenAway: 200,
  status429: 429,
  status400: 400,
  status401: 401,
  redirect: 302,
  gone: 410,
}

export function give(kind: AnswerKind, response: ServerResponse, random: Random): void {
  const { socket } = response
  if (socket === null) {
    // It came before the response to the one before it counted as written; or its sender is gone, and nothing comes.
    response.once('socket', () => give(kind, response, random))
    return
  }
  const status = statuses[kind]
  if (status !== undefined) {
    const headers = {
      ...(kind === 'status429' && { 'retry-after': '3' }),
      ...(kind === 'redirect' && { location: '/elsewhere' }),
    }
    response.writeHead(status, headers).end(kind === 'ok' ? '' : 'no')
    return
  }
  switch (kind) {
    case 'okAndMore':
      answerTwice(response)
      break
    case 'okAndLater':
      answerAgainAfter(response, random.between(0, 30))
      break
    case 'drip': {
      response.writeHead(200)
      const drip = () => {
        if (response.destroyed) return
        response.write('.')
        setTimeout(drip, 200).unref()
      }
      drip()
      break
    }
    case 'reset':
      socket.resetAndDestroy()
      break
    // What it would say would be taken for the answer to the next request.
    case 'unknowable':
      socket.destroy()
      break
    case 'close':
      socket.end()
      break
    case 'garbage':
      socket.end('these are not the bytes of a response\r\n\r\n')
      break
    case 'tooShort':
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this')
      break
    case 'cutRequest':
      socket.resetAndDestroy()
      break
    case 'cutAnswer':
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly half', () => socket.resetAndDestroy())
      break
    case 'tooLong':
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more than was said')
      break
    case 'hang':
  }
}
