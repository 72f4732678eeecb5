import assert from 'node:assert/strict'
import { test } from 'node:test'
import kafkajs from 'kafkajs'
import { describeKafkaError, type KafkaErrorKind } from '../../../src/adapters/kafka/kafka-error.ts'
import type { KafkaLogin } from '../../../src/adapters/kafka/secure/kafka-login.ts'
import type { Permission } from '../../../src/core/permissions.ts'

const login: KafkaLogin = {
  brokers: ['b:9093'],
  principal: 'User:ann',
  mechanism: 'PLAIN',
  hasTls: true,
  hasCa: false,
  hasCertificate: false,
}
const error = (name: string, message: string, more: object = {}): Error =>
  Object.assign(new Error(message), { name }, more)
const read = (name: string, resource: Permission['resource'] = 'topic'): Permission => ({
  operation: 'READ',
  resource,
  name,
  isPrefix: false,
})

test('failures that are not refusals are not reported as refusals, and other errors keep their message', () => {
  const table: [error: unknown, kind: KafkaErrorKind, message: RegExp][] = [
    // Whatever ends a login kafkajs calls a failed login.
    [
      error('KafkaJSSASLAuthenticationError', 'SASL PLAIN authentication failed: Closed connection'),
      'closed',
      /Closed/,
    ],
    [
      error(
        'KafkaJSSASLAuthenticationError',
        'SASL SCRAM SHA256 authentication failed: Request SaslAuthenticate(key: 36, version: 1) timed out',
      ),
      'closed',
      /timed out/,
    ],
    [error('KafkaJSConnectionClosedError', 'Closed connection'), 'closed', /Closed/],
    [
      error('KafkaJSConnectionError', 'Connection error: read ECONNRESET', { code: 'ECONNRESET' }),
      'closed',
      /RESET/,
    ],
    [error('KafkaJSGroupCoordinatorNotFound', 'Failed to find group coordinator'), 'closed', /coordinator/],
    [
      error('KafkaJSConnectionError', 'Connection error: connect ECONNREFUSED', { code: 'ECONNREFUSED' }),
      'other',
      /REFUSED/,
    ],
    [error('KafkaJSRequestTimeoutError', 'Request Fetch timed out'), 'other', /timed out/],
    [
      error('KafkaJSProtocolError', 'not the leader', { type: 'NOT_LEADER_FOR_PARTITION', code: 6 }),
      'other',
      /leader/,
    ],
    [new TypeError('x is undefined'), 'other', /x is undefined/],
    ['a text', 'other', /a text/],
    [null, 'other', /null/],
  ]
  for (const [given, kind, message] of table) {
    const described = describeKafkaError(given, login)
    assert.deepEqual([described.kind, described.isRefusal], [kind, false], String(given))
    assert.match(described.message, message)
  }
})

test('a refusal is found inside the errors that kafkajs wraps around it, by its type and by its number', () => {
  const denied = error('KafkaJSProtocolError', 'Not authorized', {
    type: 'TOPIC_AUTHORIZATION_FAILED',
    code: 29,
  })
  const tries = error('KafkaJSNumberOfRetriesExceeded', 'Not authorized', {
    cause: error('KafkaJSNonRetriableError', 'Not authorized', { cause: denied }),
  })
  const line =
    /^User ann may not READ topic calls: grant it with the lines of `postrider setup --print-acls User:ann`$/
  for (const given of [denied, tries, { code: 29 }, { type: 'TOPIC_AUTHORIZATION_FAILED' }]) {
    const { kind, isRefusal, message } = describeKafkaError(given, login, [read('calls'), read('g', 'group')])
    assert.deepEqual([kind, isRefusal], ['permission', true])
    assert.match(message, line)
  }
  const ofGroup = describeKafkaError({ code: 30 }, login, [read('calls'), read('g', 'group')])
  assert.match(ofGroup.message, /^User ann may not READ group g:/)
  // Which of several it was is not known.
  const ofTwo = describeKafkaError(denied, login, [read('calls'), read('retries')])
  assert.match(ofTwo.message, /^User ann lacks a permission on topic calls or retries: grant it/)
  assert.match(
    describeKafkaError({ code: 31 }, login).message,
    /^User ann lacks a permission on a cluster: grant it/,
  )
  const created = new kafkajs.KafkaJSAggregateError('Topic creation errors', [
    error('KafkaJSCreateTopicError', 'no', { type: 'TOPIC_AUTHORIZATION_FAILED', topic: 'a' }) as never,
    error('KafkaJSCreateTopicError', 'there', { type: 'TOPIC_ALREADY_EXISTS', topic: 'b' }) as never,
  ])
  assert.match(
    describeKafkaError(created, login, [read('b')]).message,
    /^User ann may not CREATE topic a: grant/,
  )
})

test('missing permissions of a user are reported in one line, with the principal quoted for a shell where necessary', () => {
  const principal = 'User:CN=a b'
  const { message } = describeKafkaError({ code: 29 }, { ...login, principal }, [read('calls')])
  assert.match(message, /^User CN=a b may not READ topic calls: .*--print-acls 'User:CN=a b'`$/)
  const unknown = describeKafkaError({ code: 29 }, { ...login, principal: null }, [read('calls')])
  assert.match(unknown.message, /^The user of the token may not READ topic calls: .*--print-acls User:NAME`$/)
})

test('certificate errors say what is wrong with the certificate and which setting names it', () => {
  const tls = (code: string, message = 'x', known: Partial<KafkaLogin> = {}) =>
    describeKafkaError(error('KafkaJSConnectionError', `Connection error: ${message}`, { code }), {
      ...login,
      ...known,
    })
  const selfSigned = tls(
    'SELF_SIGNED_CERT_IN_CHAIN',
    'self-signed certificate in certificate chain; if the root…',
  )
  assert.equal(
    selfSigned.message,
    "the brokers' certificate is not trusted (self-signed certificate in certificate chain): set KAFKA_SSL_CA_FILE to a file with the authority that signed it",
  )
  assert.match(
    tls('UNABLE_TO_GET_ISSUER_CERT', 'x', { hasCa: true }).message,
    /KAFKA_SSL_CA_FILE does not hold the authority/,
  )
  assert.match(
    tls('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED').message,
    /^the brokers ask for a client certificate: set/,
  )
  assert.match(
    tls('ERR_SSL_SSL/TLS_ALERT_UNKNOWN_CA', 'x', { hasCertificate: true }).message,
    /^the brokers refuse the client certificate \(unknown ca\): check KAFKA_SSL_CERT_FILE/,
  )
  assert.equal(tls('ERR_SSL_WRONG_VERSION_NUMBER').kind, 'listener')
})
