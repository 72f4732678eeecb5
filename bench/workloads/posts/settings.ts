import { nthCall } from '../../calls.ts'
import { makeCertificate } from '../../certificate.ts'
import type { Side } from '../../measure/side-by-side.ts'
import { startReceiver } from '../../receiver.ts'
import { deploy, type Servers } from '../../rig.ts'

/** Receivers that two forwarders are compared at. */
export interface PostSetting {
  what: string
  users: number
  delayMs: number
  isSecured: boolean
}

export const postSettings = {
  plain: { what: 'plain HTTP', users: 10_000, delayMs: 0, isSecured: false },
  tls: { what: 'TLS 1.3', users: 10_000, delayMs: 0, isSecured: true },
  slow: { what: 'receivers of 100 ms', users: 50_000, delayMs: 100, isSecured: false },
} as const satisfies Record<string, PostSetting>

/** A forwarder's deployment with one destination and a backlog for it. Both sides of a pair have their own. */
export async function postSide(
  servers: Servers,
  { users, delayMs, isSecured }: PostSetting,
  calls: number,
  { name, env = {} }: { name: string; env?: Record<string, string> },
): Promise<Side> {
  const certificate = isSecured ? await makeCertificate() : null
  const deployment = await deploy(servers, {
    ...env,
    ...(certificate && { WEBHOOK_CA_FILE: certificate.file }),
  })
  const receiver = startReceiver({ delayMs, ...(certificate && { certificate }) })
  const { port } = await receiver.reported('listening')
  await deployment.destination('crm', 'shop', [`http${isSecured ? 's' : ''}://127.0.0.1:${port}/hook`])
  await deployment.produce(calls, (index) => nthCall(index, users), name)
  return { name, deployment, receiver }
}
