import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'node:test'
import { FollowedSettings } from '../../../src/adapters/folded-log/followed-settings.ts'
import { settingsBetween } from '../../../src/adapters/folded-log/settings-history.ts'
import { Brokers } from '../../../src/adapters/kafka/link/brokers.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { silentLog as log } from '../../support/silent-log.ts'

test('whoever asks often is told the settings of any time, as who reads the whole log', async (t) => {
  const deployment = await deploy(t)
  const { kafka, topics, codecs } = deployment
  const brokers = new Brokers(kafka, 10_000)
  t.after(() => brokers.close())
  const source = { kafka, topic: topics.settings, log, codec: codecs.settings }
  const followed = new FollowedSettings(source, brokers)
  const times = [Date.now()]
  for (const id of ['one', 'two', 'three']) {
    await deployment.destination({ id, urls: ['http://127.0.0.1:9/'] })
    await delay(2)
    times.push(Date.now())
    for (const from of times)
      for (const to of [from, Date.now() + 1_000]) {
        const found = await followed.between(from, to)
        assert.deepEqual(found, await settingsBetween(source, from, to))
        if (from === times.at(-1)) assert.ok(found.length === 1 && found[0]!.state.destinations.has(id))
      }
  }
})
