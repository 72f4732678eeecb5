import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultOptions } from '../../../src/core/settings/destination-options.ts'
import {
  headerPlace,
  sharedSecretPlace,
  type Destination,
  noLogin,
} from '../../../src/core/settings/settings.ts'
import { setUp } from '../../../src/forwarder/plan/destination-runtime.ts'

test('each secret is opened for its own place, and a header of any name reaches its URL', () => {
  const sealed = { keyId: 'k', iv: '', ciphertext: '', tag: '', fingerprint: '' }
  const url = 'https://example.com/hook'
  const names = ['X-Key', 'constructor']
  const destination: Destination = {
    id: 'crm',
    name: 'CRM',
    type: 'Webhooks',
    sourceIds: ['shop'],
    urls: [{ id: 'u1', url, headers: names.map((name) => ({ name, value: sealed })), goneAt: null }],
    sharedSecret: sealed,
    earlierSecret: null,
    login: noLogin,
    templateSecrets: [],
    pause: null,
    endedPauses: [],
    options: defaultOptions,
    enabled: true,
  }
  const places: string[] = []
  const { secrets, targets } = setUp(destination, (_sealed, place) => `opened ${places.push(place)}`)
  assert.deepEqual(places, [sharedSecretPlace('crm'), ...names.map((name) => headerPlace('crm', url, name))])
  assert.deepEqual(secrets, ['opened 1'])
  assert.deepEqual(Object.entries(targets.get('u1')!.headers), [
    ['X-Key', 'opened 2'],
    ['constructor', 'opened 3'],
  ])
})
