import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expiresSoonMs, expiryOf } from '../../../src/core/settings/certificate-expiry.ts'
import { editedLogin, editLogin } from '../../../src/core/settings/login.ts'
import { noLogin, type SealedSecret } from '../../../src/core/settings/settings.ts'

const crm = { id: 'crm', tokenUrl: 'https://id.test/token' }

const secretOf = (text: string) => ({
  text,
  fingerprint: text,
  seal: (place: string): SealedSecret => ({
    ...{ keyId: 'k', iv: '', ciphertext: place, tag: '', fingerprint: text },
  }),
})
const certificates = [{ subject: 'CN=a', issuer: 'CN=b', fingerprint: 'AA', expiresAt: 1 }]
const certOf = (text: string) => ({ ...secretOf(text), certificates })

test('each part of a login is sealed for a place of its own, and keeps what may be shown of it', () => {
  const { change, faults } = editLogin({ clientCert: certOf('c'), clientKey: secretOf('k'), ca: null }, crm)
  assert.deepEqual(faults, [])
  const login = editedLogin(noLogin, change!)
  assert.deepEqual(login.clientCert?.certificates, certificates)
  assert.equal(login.ca, null)
  const places = [login.clientCert!.ciphertext, login.clientKey!.ciphertext]
  assert.deepEqual(places, ['["login","clientCert","crm"]', '["login","clientKey","crm"]'])
})

test('a client certificate and its key come and go together', () => {
  const [cert, key] = [certOf('c'), secretOf('k')]
  for (const edit of [
    { clientCert: cert },
    { clientKey: key },
    { clientCert: null },
    { clientKey: null },
    { clientCert: cert, clientKey: null },
    { clientCert: null, clientKey: key },
  ])
    assert.equal(editLogin(edit, crm).faults.length, 1, JSON.stringify(edit))
  for (const edit of [{}, { clientCert: cert, clientKey: key }, { clientCert: null, clientKey: null }])
    assert.equal(editLogin(edit, crm).faults.length, 0, JSON.stringify(edit))
})

test('a destination whose login was taken away is as one that never had any', () => {
  const { change } = editLogin({ clientCert: certOf('c'), clientKey: secretOf('k') }, crm)
  const login = editedLogin(noLogin, change!)
  assert.notEqual(login, noLogin)
  assert.equal(editedLogin(login, { clientCert: null, clientKey: null }), noLogin)
  assert.equal(editedLogin(login, {}), login)
})

test('a certificate ends soon from fourteen days before its end', () => {
  const [now, day] = [Date.UTC(2026, 0, 1), 86_400_000]
  assert.equal(expiresSoonMs, 14 * day)
  assert.equal(expiryOf(now + 14 * day, now), 'later')
  assert.equal(expiryOf(now + 14 * day - 1, now), 'soon')
  assert.equal(expiryOf(now + 1, now), 'soon')
  assert.equal(expiryOf(now, now), 'expired')
})

test('the secret of OAuth2 is sealed for its token URL, whatever the URL’s spelling', () => {
  const edit = { oauthClientSecret: secretOf('s') }
  const placeAt = (tokenUrl: string) =>
    editLogin(edit, { id: 'crm', tokenUrl }).change!.oauthClientSecret!.ciphertext
  assert.equal(placeAt('https://ID.test:443/token'), placeAt(crm.tokenUrl))
  assert.notEqual(placeAt('https://other.test/token'), placeAt(crm.tokenUrl))
})
