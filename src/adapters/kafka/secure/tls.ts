import { createSecureContext, type ConnectionOptions } from 'node:tls'
import type { KafkaTls } from '../../../config/kafka-security.ts'

/**
 * kafkajs's `ssl`. The roots of the CA file are the only ones that are trusted, as with other Kafka clients. The files'
 * contents are parsed once: tls.connect would do it for each connection.
 */
export function tlsOptions(tls: false | KafkaTls): boolean | ConnectionOptions {
  if (!tls) return false
  const { ca, cert, key } = tls
  if (!ca && !cert) return true
  return {
    secureContext: createSecureContext({
      ...(ca && { ca: ca.text }),
      ...(cert && key && { cert: cert.text, key: key.text }),
    }),
  }
}
