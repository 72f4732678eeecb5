import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AttemptReports, type AttemptReportsParts } from '../../../src/forwarder/send/attempt-reports.ts'
import { steadyClock } from '../../../src/forwarder/steady-clock.ts'
import { Engine } from '../fakes.ts'

test('requests that were sent again are logged with their number, one line a minute for each endpoint', (t) => {
  let now = 1_000
  t.mock.method(steadyClock, 'now', () => now)
  const lines: object[] = []
  const log = { info() {}, warn: (fields: object) => void lines.push(fields), error() {} }
  const reports = new AttemptReports({ log } as unknown as AttemptReportsParts)
  const engine = new Engine()
  const [crm, erp] = ['crm', 'erp'].map((id) => engine.destination(id).endpoints[0]!)
  for (const each of [crm, crm, erp, crm]) reports.sentAgain(each!)
  now += 60_000
  reports.sentAgain(crm!)
  reports.sentAgain(crm!)
  assert.deepEqual(lines, [
    { destination: 'crm', urlId: 'u1', requests: 1 },
    { destination: 'erp', urlId: 'u1', requests: 1 },
    { destination: 'crm', urlId: 'u1', requests: 3 },
  ])
})
