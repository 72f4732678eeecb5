import type { Source } from '../core/settings/settings.ts'

/** Where senders reach the collector. */
export interface PublicAddress {
  protocol: 'http' | 'https'
  /** Host, port unless it is the usual one, and path in front of `/v1`, without a slash at its end. */
  base: string
}

/**
 * How long SDKs try again: in a browser for hours, from what they keep there. Seconds, as all of these; 5xx are tried
 * again, and of 4xx those that a collector means so (`answers.ts`). In the form of analytics.js and analytics-kotlin.
 */
const httpConfig = {
  rateLimitConfig: { enabled: true, maxRetryCount: 100, maxRetryInterval: 300, maxRateLimitDuration: 43_200 },
  backoffConfig: {
    enabled: true,
    maxRetryCount: 100,
    baseBackoffInterval: 0.5,
    maxBackoffInterval: 300,
    maxTotalBackoffDuration: 43_200,
    jitterPercent: 50,
    default4xxBehavior: 'drop',
    default5xxBehavior: 'retry',
    statusCodeOverrides: { '408': 'retry', '429': 'retry' },
  },
}

/** Every call of every name. */
const everything = { __default: { enabled: true, integrations: {} } }

/**
 * What Segment's SDKs in browsers and apps ask for before they send. Where it lacks `apiHost`, some of them send to
 * Segment, whatever address the app gave them.
 */
export const segmentSettings = (
  { writeKey }: Pick<Source, 'writeKey'>,
  { protocol, base }: PublicAddress,
) => ({
  integrations: {
    'Segment.io': {
      apiKey: writeKey,
      apiHost: `${base}/v1`,
      protocol,
      addBundledMetadata: true,
      unbundledIntegrations: [],
      maybeBundledConfigIds: {},
      versionSettings: { version: '4.4.7', componentTypes: ['browser'] },
      httpConfig,
    },
  },
  plan: { track: everything, identify: everything, group: everything },
  edgeFunction: {},
  middlewareSettings: {},
  enabledMiddleware: {},
  analyticsNextEnabled: true,
  legacyVideoPluginsEnabled: false,
  remotePlugins: [],
  // They would report to Segment how they are.
  metrics: { sampleRate: 0 },
})

const silent = { errors: { enabled: false }, metrics: { enabled: false } }

/** What RudderStack's SDKs ask for before they send; to one that is disabled they do not send at all. */
export function rudderSourceConfig(source: Source, { protocol, base }: PublicAddress) {
  const dataplane = [{ url: `${protocol}://${base}`, default: true }]
  return {
    source: {
      id: source.id,
      name: source.name,
      writeKey: source.writeKey,
      enabled: source.enabled,
      config: { statsCollection: silent },
      dataplanes: { US: dataplane, EU: dataplane },
      connections: [],
      destinations: [],
    },
  }
}
