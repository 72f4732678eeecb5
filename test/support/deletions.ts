import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { openDeletions, type OpenDeletions } from '../../src/operators/deletions/kafka.ts'
import type { DeletionStatus } from '../../src/operators/deletions/deletions.ts'
import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import type { Erasure } from '../../src/core/erasure/erasures.ts'
import { runCommand } from './deployment/deployment-cli.ts'
import type { Deployment } from './deployment/deployment.ts'
import { silentLog } from './silent-log.ts'

/** What `webhooks.erasures` holds. */
export async function erasuresOf({ read, topics, codecs }: Deployment): Promise<Erasure[]> {
  const records = await read(topics.erasures)
  return Promise.all(records.map(({ value }) => codecs.erasures.decode(value)))
}

/** What `analytics.calls` holds. */
export async function callsOf({ read, topics, codecs }: Deployment): Promise<AnalyticsCall[]> {
  const records = await read(topics.calls)
  return Promise.all(records.map(({ value }) => codecs.calls.decode(value)))
}

/** What the command prints on stdout; it has to succeed. */
export async function ok(
  t: TestContext,
  deployment: Deployment,
  input: string,
  ...args: string[]
): Promise<string> {
  const { status, stdout, stderr } = await runCommand(t, deployment, input, ...args)
  assert.equal(status, 0, stderr)
  return stdout
}

/** Deletion requests in this process, which is quicker than a command. */
export function deletionsIn(deployment: Deployment): OpenDeletions {
  const { settings } = deployment
  const deletions = openDeletions({ ...deployment, log: silentLog }, { settings, actor: () => 'test' })
  deployment.endFirst(() => deletions.close())
  return deletions
}

/** Looks until it is so. */
export async function shownOnce(
  deletions: OpenDeletions,
  id: string,
  isSo: (status: DeletionStatus) => boolean,
): Promise<DeletionStatus> {
  let status = await deletions.show(id)
  const deadline = Date.now() + 60_000
  while (!isSo(status)) {
    assert.ok(Date.now() < deadline, `it did not come to that: ${JSON.stringify(status)}`)
    status = await deletions.show(id)
  }
  return status
}

export const nothingWaits = ({ progress }: DeletionStatus): boolean =>
  progress.every(({ waiting }) => waiting === 0)
