import assert from 'node:assert/strict'
import { test } from 'node:test'
import { interpolate, readDashboard } from '../support/ops/dashboard.ts'
import { selectorsOf } from '../support/ops/rules.ts'

const dashboard = readDashboard()
const { panels, templating } = dashboard

test('the dashboard has a row for each subject, with panels that do not overlap', () => {
  const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title)
  assert.deepEqual(rows, ['Overview', 'Destinations', 'Retries', 'Collector', 'Kafka', 'Process'])
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const taken = new Map<string, string>()
  for (const { title, gridPos } of panels) {
    assert.ok(gridPos.x + gridPos.w <= 24, title)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.equal(taken.get(`${x}/${y}`), undefined, `${title} overlaps`)
        taken.set(`${x}/${y}`, title)
      }
  }
})

test('every panel says what it shows, and asks the chosen data source for the chosen deployment', () => {
  for (const { title, type, description, targets = [] } of panels) {
    if (type === 'row') continue
    assert.ok(['timeseries', 'stat', 'table', 'heatmap'].includes(type), title)
    assert.ok(description && description.length > 5, title)
    assert.ok(targets.length > 0, title)
    for (const { expr, datasource } of targets) {
      assert.equal(datasource.uid, '${datasource}', title)
      for (const { matchers, text } of selectorsOf(interpolate(expr, dashboard)))
        assert.ok(
          matchers.some(({ label }) => label === 'job') || text === 'postrider_build_info',
          `${title}: ${text}`,
        )
    }
  }
})

test('data source, topic prefix, deployment and destination can be chosen', () => {
  assert.deepEqual(
    templating.list.map(({ name }) => name),
    ['datasource', 'prefix', 'job', 'destination'],
  )
  const used = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)).join('\n')
  for (const name of ['prefix', 'job', 'destination']) assert.match(used, new RegExp(`\\$\\{?${name}\\b`))
})
