import type { Tier } from './core/topics.ts'

/** Everything that the environment decides, checked once at start. */
export interface Config {
  kafka: {
    brokers: string[]
    ssl: boolean
    sasl: {
      mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
      username: string
      password: string
    } | null
  }
  registry: { url: string; username: string | null; password: string | null }
  topicPrefix: string
  groupId: string
  /** Ascending by delay. */
  retryTiers: Tier[]
  retryWindowMs: number
  webhookTimeoutMs: number
  ledger: 'failures' | 'all'
  maxInFlight: number
  maxInFlightPerEndpoint: number
  /** CIDRs that webhooks may reach although they are private. */
  allowedNetworks: string[]
  webhookCaFile: string | null
  collectorPort: number
  consolePort: number
  metricsPort: number
  adminToken: string | null
  /** 32-byte keys, the one that encrypts first; empty when SECRETS_KEY is not set. */
  secretsKeys: Uint8Array[]
  /** For `setup` only. */
  partitions: { calls: number; retry: number; deadLetters: number; deliveries: number; memberships: number }
  replicationFactor: number
  logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'
}
