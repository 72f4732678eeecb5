import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConsoleCounts } from '../../../src/adapters/metrics/console-metrics.ts'
import { ProcessMetrics, type ShownPart } from '../../../src/adapters/metrics/process-metrics.ts'
import type { Exposed } from '../../../src/adapters/metrics/exposition.ts'
import { parseExposition } from '../../support/exposition.ts'

const shown = (of: Exposed) => parseExposition([...of.expose()].join('')).samples

test('the page says which deployment the process belongs to, and which of its parts take work', () => {
  let [isReady, version] = [false, 0]
  const restarts = { unavailable: 2, bug: 0 }
  const forwarder: ShownPart = {
    name: 'forwarder',
    isReady: () => isReady,
    restarts,
    settingsVersion: () => version,
  }
  const console: ShownPart = { ...forwarder, name: 'console', isReady: () => true, settingsVersion: () => 7 }
  const metrics = new ProcessMetrics({
    version: '1.2.3',
    topicPrefix: 'eu.',
    groupId: 'postrider',
    parts: [forwarder, console],
  })
  const build = 'postrider_build_info{version="1.2.3",topic_prefix="eu.",group_id="postrider"}'
  assert.equal(shown(metrics).get(build), 1)
  assert.equal(shown(metrics).get('postrider_part_ready{part="forwarder"}'), 0)
  assert.equal(shown(metrics).get('postrider_part_ready{part="console"}'), 1)
  assert.equal(shown(metrics).get('postrider_part_restarts_total{part="forwarder",cause="unavailable"}'), 2)
  assert.equal(shown(metrics).get('postrider_part_restarts_total{part="forwarder",cause="bug"}'), 0)
  // A part that does not work has no version, so that it is not taken for one that is far behind.
  assert.equal(shown(metrics).get('postrider_settings_version{part="forwarder"}'), undefined)
  assert.equal(shown(metrics).get('postrider_settings_version{part="console"}'), 7)
  isReady = true
  version = 6
  restarts.bug = 1
  assert.equal(shown(metrics).get('postrider_part_ready{part="forwarder"}'), 1)
  assert.equal(shown(metrics).get('postrider_settings_version{part="forwarder"}'), 6)
  assert.equal(shown(metrics).get('postrider_part_restarts_total{part="forwarder",cause="bug"}'), 1)
})

test('a console shows the verdict of its last audit and when it ended, and nothing before the first', () => {
  const counts = new ConsoleCounts()
  assert.equal(shown(counts).get('postrider_audit_passed'), undefined)
  assert.equal(shown(counts).get('postrider_audit_interval_seconds'), undefined)
  counts.auditIntervalMs = 60_000
  assert.equal(shown(counts).get('postrider_audit_interval_seconds'), 60)
  counts.audit = () => ({ at: 1_700_000_000_500, ok: false })
  assert.equal(shown(counts).get('postrider_audit_passed'), 0)
  assert.equal(shown(counts).get('postrider_audit_timestamp_seconds'), 1_700_000_000.5)
  counts.audit = () => ({ at: 1_700_000_000_500, ok: true })
  assert.equal(shown(counts).get('postrider_audit_passed'), 1)
})
