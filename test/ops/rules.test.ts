import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { restartCauses } from '../../src/restarts.ts'
import { callResults } from '../../src/collector/metrics.ts'
import { partMakers } from '../../src/cli/run-parts.ts'
import { outcomeKinds } from '../../src/core/delivery/outcome.ts'
import { degradedUnder, judgedMs } from '../../src/core/statistics/health.ts'
import { dispositionLabels } from '../../src/core/ledger/delivery-event.ts'
import { readPage, root } from '../support/docs.ts'
import { readRules, readRuleTests, ruleTestFiles, rulesFile, selectorsOf } from '../support/ops/rules.ts'
import { needed } from '../support/ops/tools.ts'

const run = promisify(execFile)
const promtool = needed('promtool')

test('promtool accepts the rules', { skip: promtool.skip }, async () => {
  const { stdout } = await run(promtool.path('promtool'), ['check', 'rules', join(root, rulesFile)])
  assert.match(stdout, /SUCCESS: \d+ rules found/)
})

test(
  'each alert fires when it must, not before, not in a rolling restart, and one fires without data',
  {
    skip: promtool.skip,
    timeout: 600_000,
  },
  async () => {
    const files = ruleTestFiles.map((file) => join(root, file))
    assert.ok(files.length > 3)
    await assert.doesNotReject(run(promtool.path('promtool'), ['test', 'rules', ...files]))
  },
)

const { recordings, alerts } = readRules()
const expressions = [...recordings, ...alerts].map(({ expr }) => expr)

/** What a test expects of an alert: whether it fires at that time. */
const expectations = readRuleTests().flatMap(({ promql_expr_test }, index) =>
  promql_expr_test.map(({ expr, exp_samples = [] }) => ({ index, expr, fires: exp_samples.length > 0 })),
)

test('every alert has a test in which it fires, and one in which it does not', () => {
  assert.ok(alerts.length > 20)
  for (const { alert } of alerts) {
    const own = expectations.filter(({ expr }) => expr.includes(`"${alert}"`))
    const others = expectations.filter(({ expr }) => /alertname=~"/.test(expr))
    const isNamed = others.filter(({ expr }) =>
      new RegExp(`^(?:${/alertname=~"([^"]+)"/.exec(expr)![1]})$`).test(alert),
    )
    const all = [...own, ...isNamed]
    assert.ok(
      all.some(({ fires }) => fires),
      `${alert} fires in no test`,
    )
    // The rolling restart looks at all alerts at once, which is not enough.
    assert.ok(
      all.some(({ fires }) => !fires) || alert === 'PostriderRecordsIgnored',
      `${alert} is always expected to fire`,
    )
  }
})

test('every alert has a severity, a summary, a description, and a runbook that exists', () => {
  const runbooks = new Set(
    [...readPage('docs/operations.md').matchAll(/^#### (Postrider\w+)$/gm)].map(([, name]) => name!),
  )
  for (const { alert, labels, annotations } of alerts) {
    assert.match(alert, /^Postrider([A-Z][a-z]+)+$/)
    assert.match(labels.severity ?? '', /^(critical|warning)$/, alert)
    assert.ok(annotations.summary && annotations.description, alert)
    assert.equal(annotations.runbook_url, `docs/operations.md#${alert.toLowerCase()}`)
    assert.ok(runbooks.delete(alert), `${alert} has no runbook in docs/operations.md`)
  }
  assert.deepEqual([...runbooks], [], 'runbooks of alerts that do not exist')
})

/** Values of labels that are a closed set in code. */
const labelValues: Record<string, readonly string[]> = {
  disposition: dispositionLabels,
  outcome: outcomeKinds,
  result: callResults,
  cause: restartCauses,
  part: Object.keys(partMakers),
}

test('alerts say that a destination fails or asks to wait by the bounds of the console', () => {
  const exprOf = (name: string) => alerts.find(({ alert }) => alert === name)!.expr
  const judged = `[${judgedMs / 60_000}m]`
  for (const name of ['PostriderDestinationFailing', 'PostriderDestinationAskedToWait'])
    for (const [range] of exprOf(name).matchAll(/\[\w+\]/g)) assert.equal(range, judged, name)
  assert.match(
    exprOf('PostriderDestinationAskedToWait'),
    new RegExp(`ratio_rate${judgedMs / 60_000}m > 1 - ${degradedUnder}\n`),
  )
})

test('rules select metrics that are documented, and values of labels that exist', () => {
  const documented = new Set(
    [...readPage('docs/operations.md').matchAll(/^\| `(postrider_\w+)/gm)].map(([, name]) => name!),
  )
  const recorded = new Set(recordings.map(({ record }) => record))
  const others = /^(up|process_start_time_seconds|nodejs_eventloop_lag_p99_seconds)$/
  for (const { metric, matchers, text } of expressions.flatMap(selectorsOf)) {
    const name = metric.replace(/_(bucket|sum|count)$/, '')
    assert.ok(documented.has(name) || recorded.has(metric) || others.test(metric), text)
    for (const { label, value } of matchers)
      for (const one of labelValues[label] ? value.split('|') : [])
        assert.ok(labelValues[label]!.includes(one), `${text}: there is no ${label} "${one}"`)
  }
})

test('the Prometheus of docker-compose.yml loads the rules', async () => {
  const { rule_files } = parse(readPage('prometheus.yml')) as { rule_files: string[] }
  assert.deepEqual(rule_files, ['rules/*.rules.yml'])
  const compose = parse(readPage('docker-compose.yml'), { merge: true }) as {
    services: { prometheus: { volumes: string[] } }
  }
  assert.ok(compose.services.prometheus.volumes.includes('./ops/prometheus:/etc/prometheus/rules:ro'))
})
