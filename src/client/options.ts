import { AnalyticsError } from './errors.ts'
import type { DeliveryError } from './errors.ts'
import { maxCallBytes } from './write-call.ts'
import { HttpTransport } from './http-transport.ts'
import type { Transport } from './transport.ts'
import type { BackoffPolicy } from './backoff.ts'

/** All are optional. Times are in ms. */
export interface AnalyticsOptions {
  /** The collector: a base URL, to which `/v1/batch` is added, or a full one. Default `http://127.0.0.1:8080`. */
  endpoint?: string | undefined
  /**
   * How many waiting calls start a request. Default 20. What has gathered by then goes along, up to 500 KB. 1 turns
   * batching off: each call is sent at once, in a request of its own.
   */
  flushAt?: number | undefined
  /** Another name of `flushAt`. */
  size?: number | undefined
  /** How long after the last request waiting calls start one, however few they are. Default 5,000. */
  flushAfter?: number | undefined
  /** How often a batch is tried again before its calls go to `onError`. Default 10, about a minute; Infinity is for ever. */
  retries?: number | undefined
  /** The wait before the first retry, which doubles with each. Default 100. A longer Retry-After is honoured. */
  initialBackoff?: number | undefined
  /** The longest wait between retries. Default 30,000. */
  maxBackoff?: number | undefined
  /** How long an attempt may take. Default 10,000. */
  timeout?: number | undefined
  /** How many calls may be held, those on their way included; more throw `queue_full`. Default 10,000. */
  maxQueued?: number | undefined
  /** How many bytes of JSON may be held. Default 16 MB (16,777,216). */
  maxQueuedBytes?: number | undefined
  /** How long `close()` may take to deliver what waits. Default 10,000. */
  closeTimeout?: number | undefined
  /**
   * Gets every call that was taken and could not be delivered, with the reason. What it throws is printed. Default:
   * one line on stderr a failure.
   */
  onError?: ((error: DeliveryError) => void) | undefined
  /** Where batches go, instead of to a collector: `KafkaTransport` of `postrider/kafka`, or one of your own. */
  transport?: Transport | undefined
}

export interface ClientSettings {
  flushAt: number
  flushAfterMs: number
  policy: BackoffPolicy
  limits: { calls: number; bytes: number }
  closeTimeoutMs: number
  onError: (error: DeliveryError) => void
  transport: Transport
}

/** setTimeout takes no more. */
export const longestTimeoutMs = 2 ** 31 - 1
const known: Record<keyof AnalyticsOptions, true> = {
  endpoint: true,
  flushAt: true,
  size: true,
  flushAfter: true,
  retries: true,
  initialBackoff: true,
  maxBackoff: true,
  timeout: true,
  maxQueued: true,
  maxQueuedBytes: true,
  closeTimeout: true,
  onError: true,
  transport: true,
}

/** Checks everything. Throws AnalyticsError `invalid_option`, which names the option and never the write key. */
export function readOptions(writeKey: string, options: AnalyticsOptions): ClientSettings {
  if (typeof options !== 'object' || options === null) throw invalid('the options must be an object')
  const unknown = Object.keys(options).find((name) => !(name in known))
  if (unknown !== undefined)
    throw invalid(`there is no option ${unknown}; there are ${Object.keys(known).join(', ')}`)
  const flushAt = flushAtOf(options)
  const calls = number(options, 'maxQueued', 10_000, { min: 1, whole: true })
  if (flushAt > calls)
    throw invalid(`maxQueued (${calls}) is less than flushAt (${flushAt}): the queue would be full before`)
  const initialBackoffMs = number(options, 'initialBackoff', 100)
  return {
    flushAt,
    flushAfterMs: number(options, 'flushAfter', 5_000),
    policy: {
      retries: options.retries === Infinity ? Infinity : number(options, 'retries', 10, { whole: true }),
      initialBackoffMs,
      maxBackoffMs: number(options, 'maxBackoff', Math.max(30_000, initialBackoffMs), {
        min: initialBackoffMs,
      }),
    },
    limits: {
      calls,
      bytes: number(options, 'maxQueuedBytes', 16 * 1_048_576, { min: maxCallBytes, whole: true }),
    },
    closeTimeoutMs: number(options, 'closeTimeout', 10_000),
    onError: onErrorOf(options),
    transport: transportOf(writeKey, options),
  }
}

function flushAtOf({ flushAt, size }: AnalyticsOptions): number {
  if (flushAt !== undefined && size !== undefined && flushAt !== size)
    throw invalid('size is another name of flushAt: give one of them')
  const name = flushAt === undefined ? 'size' : 'flushAt'
  return number({ [name]: flushAt ?? size }, name, 20, { min: 1, whole: true })
}

function number(
  options: AnalyticsOptions,
  name: keyof AnalyticsOptions,
  preset: number,
  { min = 0, whole = false }: { min?: number; whole?: boolean } = {},
): number {
  const value = options[name] ?? preset
  if (
    typeof value !== 'number' ||
    !(value >= min && value <= longestTimeoutMs) ||
    (whole && !Number.isInteger(value))
  )
    throw invalid(
      `${name} must be a ${whole ? 'whole ' : ''}number from ${min} to ${longestTimeoutMs}, not ${String(value)}`,
    )
  return value
}

function onErrorOf({ onError = printFailure }: AnalyticsOptions): ClientSettings['onError'] {
  if (typeof onError !== 'function') throw invalid('onError must be a function')
  return onError
}

function transportOf(writeKey: string, options: AnalyticsOptions): Transport {
  const { transport, endpoint } = options
  if (typeof writeKey !== 'string') throw invalid('the write key must be a string')
  if (transport !== undefined) {
    if (endpoint !== undefined) throw invalid('give endpoint or transport, not both')
    if (typeof transport?.send !== 'function' || typeof transport.close !== 'function')
      throw invalid('transport must have send and close')
    return transport
  }
  // A colon would end it in Basic authentication.
  if (!/^[^\s:\p{Cc}]+$/u.test(writeKey))
    throw invalid('the write key of the source is needed: not empty, without white space and colons')
  return new HttpTransport({
    endpoint: endpointOf(endpoint ?? 'http://127.0.0.1:8080'),
    writeKey,
    timeoutMs: number(options, 'timeout', 10_000, { min: 1 }),
  })
}

function endpointOf(text: string): URL {
  if (typeof text !== 'string' || !/^https?:\/\//i.test(text) || !URL.canParse(text))
    throw invalid('endpoint must be a URL such as https://collector.example.com')
  const url = new URL(text)
  if (url.username !== '' || url.password !== '')
    throw invalid('endpoint holds a user name or password: the write key is all that is sent')
  if (url.pathname === '/') url.pathname = '/v1/batch'
  url.hash = ''
  return url
}

function printFailure(error: DeliveryError): void {
  console.error(`postrider: ${error.message}`)
}

const invalid = (fault: string): AnalyticsError => new AnalyticsError('invalid_option', fault)
