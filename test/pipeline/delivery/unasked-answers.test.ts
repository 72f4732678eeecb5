// A host that answers one destination's calls twice, and another destination on the same host that refuses all.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startRawServer } from '../../adapters/webhook/raw-server.ts'
import { settledAudit } from '../../support/audit.ts'
import { NumberedCalls } from '../../support/calls/numbered-calls.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { createAuthority } from '../../support/secured/certificates.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

for (const client of ['direct', 'undici']) {
  const title =
    'no call counts as delivered because of an answer that its host gave to another destination’s call'
  test(`${title}: by ${client}`, (t) => refusedStaysRefused(t, client))
}

async function refusedStaysRefused(t: TestContext, client: string): Promise<void> {
  const authority = await createAuthority(t)
  const taken = new Set<string>()
  const server = await startRawServer(
    t,
    (socket, _index, request) => {
      if (request.startsWith('POST /victim')) socket.write('HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n')
      else {
        taken.add(/^idempotency-key: (.*)$/im.exec(request)![1]!)
        // Two TLS records, in one piece.
        socket.write(ok)
        socket.write(ok)
      }
    },
    { tls: { ...(await authority.issue()), version: 'TLSv1.3' }, inOnePiece: true },
  )
  const deployment = await deploy(t, {
    WEBHOOK_CA_FILE: authority.caFile,
    RETRY_TIERS: '300ms',
    RETRY_WINDOW: '1s',
    WEBHOOK_CLIENT: client,
  })
  for (const id of ['a', 'victim'])
    await deployment.destination({ id, urls: [new URL(`/${id}`, server.url).href] })
  await new NumberedCalls(deployment).produce(150)
  await deployment.forwarder()
  const report = await settledAudit(deployment)
  assert.deepEqual(report.faults, [])
  const [a, victim] = ['a', 'victim'].map((id) =>
    report.destinations.find(({ destinationId }) => destinationId === id),
  )
  assert.deepEqual([victim!.planned, victim!.delivered, victim!.dead], [600, 0, 600])
  // What a machine that is busy did not get through within the short window is a dead letter.
  assert.deepEqual([a!.planned, a!.delivered + a!.dead], [600, 600])
  assert.ok(a!.delivered > 0 && a!.delivered <= taken.size, `${a!.delivered} of ${taken.size}`)
}
