import type { Kafka } from 'kafkajs'
import type { Permission } from '../../../core/permissions.ts'
import { PostriderError, messageOf } from '../../../errors.ts'
import type { Logger } from '../../log.ts'
import { missingPermissions } from './authorized-operations.ts'
import { deniedMessage } from '../kafka-error.ts'
import { loginBehind } from './kafka-login.ts'

/**
 * Throws PostriderError `setup` with everything that the brokers do not allow, before it would be missed at work: a
 * right to write dead letters, say, which may be needed weeks later. Brokers that do not know the client, because there is
 * neither TLS nor a login, are not asked; nor does it throw where no answer comes.
 */
export async function requirePermissions(
  kafka: Kafka,
  needs: readonly Permission[],
  log: Logger,
): Promise<void> {
  const login = loginBehind(kafka)
  if (login.mechanism === null && !login.hasTls) return
  let missing: Permission[]
  try {
    missing = await missingPermissions(kafka, needs)
  } catch (error) {
    log.debug({ error: messageOf(error) }, 'the brokers did not say what this user may do')
    return
  }
  if (missing.length > 0) throw new PostriderError('setup', deniedMessage(login, missing))
}
