import type { RetryPolicy } from '../delivery/disposition.ts'
import { anyHost, type HostRefusal } from '../delivery/endpoint-url.ts'

/**
 * What the environment of the deciding process allows to be set. Another process may allow more: what the log holds already
 * stays.
 */
export interface DeploymentRules {
  hostRefusal: HostRefusal
  /** The schedule that destinations choose from; null where it is not known. */
  retryPolicy: RetryPolicy | null
}

export const noRules: DeploymentRules = { hostRefusal: anyHost, retryPolicy: null }
