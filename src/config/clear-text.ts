import type { Config } from './config.ts'
import { kafkaSecurityWarnings } from './kafka-security.ts'

/** Logins that reveal their secret to listeners on the network: a line each, for the log. */
export function clearTextWarnings({ kafka, registry }: Pick<Config, 'kafka' | 'registry'>): string[] {
  const warnings = kafkaSecurityWarnings(kafka)
  if (registry.password !== null && registry.url.startsWith('http:'))
    warnings.push(
      'the password goes to the schema registry in clear text: use an https URL for SCHEMA_REGISTRY_URL',
    )
  return warnings
}
