import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { installPatches } from '../../../../src/adapters/kafka/patches/index.ts'
import { silentLogger } from '../../../../src/adapters/kafka/patches/patch.ts'

installPatches()
const require = createRequire(import.meta.url)
const Connection = require('kafkajs/src/network/connection') as new (options: object) => {
  connect(): Promise<unknown>
  disconnect(): Promise<unknown>
  socket?: Socket
}
const socketFactory = (require('kafkajs/src/network/socketFactory') as () => object)()

test('a connection that cannot be opened accumulates no listeners, however often it is closed', async () => {
  const connection = new Connection({
    host: '127.0.0.1',
    port: 1,
    logger: silentLogger,
    socketFactory,
    connectionTimeout: 5_000,
    requestTimeout: 5_000,
  })
  const connecting = connection.connect()
  const socket = connection.socket!
  await assert.rejects(connecting)
  for (let times = 0; times < 12; times++) await connection.disconnect()
  assert.ok(socket.listenerCount('connect') <= 2, `${socket.listenerCount('connect')} listeners`)
})
