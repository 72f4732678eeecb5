import type { TestContext } from 'node:test'
import { LoginCode } from '../../../src/console/page/session.ts'
import { post } from '../calls/collectors.ts'
import { startConsole, type RunningConsole } from '../consoles.ts'
import { startCommand } from '../deployment/deployment-cli.ts'
import { deploy, type Deployment } from '../deployment/deployment.ts'
import { temporaryFolder } from '../deployment/rig.ts'
import { startReceiver, type Receiver } from '../receivers.ts'
import { until } from '../until.ts'

/** A deployment at work: a collector and a forwarder as a process, a console in this one. */
export interface Scene {
  deployment: Deployment
  console: RunningConsole
  loginCode: LoginCode
  collectorUrl: string
  /** Takes calls of the source `shop`; resolves when they are in Kafka. */
  send(calls: readonly object[]): Promise<void>
  /** Ends collector and forwarder in good order. */
  stopParts(): Promise<void>
}

/** Starts it, and waits until it takes calls. `prepare` makes destinations; unless it does, there is none. */
export async function startScene(
  t: TestContext,
  prepare: (deployment: Deployment) => Promise<void> = async () => {},
  env: Record<string, string> = {},
): Promise<Scene> {
  const store = await temporaryFolder(t)
  const deployment = await deploy(t, { COLLECTOR_PORT: '0', STORE_PATH: store, ...env })
  await prepare(deployment)
  const loginCode = new LoginCode(Date.now())
  const console = await startConsole(deployment, { loginCode })
  const parts = startCommand(t, deployment, 'run', 'collector', 'forwarder')
  let output = ''
  parts.process.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const port = () => /collecting at http:\/\/localhost:(\d+)/.exec(output)?.[1]
  await until(() => port() !== undefined, 30_000)
  const collector = { url: `http://127.0.0.1:${port()}` }
  return {
    deployment,
    console,
    loginCode,
    collectorUrl: collector.url,
    async send(calls) {
      for (let start = 0; start < calls.length; start += 100) {
        const batch = calls.slice(start, start + 100)
        await until(async () => (await post(collector, '/v1/batch', { batch })).status === 200, 30_000)
      }
    },
    async stopParts() {
      parts.process.kill('SIGTERM')
      await parts.ended
    },
  }
}

/** Receivers that take everything, refuse everything, and answer nothing but errors. */
export async function startReceivers(
  t: TestContext,
): Promise<Record<'fine' | 'refusing' | 'failing', Receiver>> {
  const [fine, refusing, failing] = await Promise.all([startReceiver(t), startReceiver(t), startReceiver(t)])
  refusing.answer({ status: 404 })
  failing.answer({ status: 503 })
  return { fine, refusing, failing }
}
