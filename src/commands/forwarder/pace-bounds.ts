import type { Config } from '../../config/config.ts'
import { defaultBreakerLimits } from '../../core/pacing/breaker.ts'
import type { PaceBounds } from '../../core/pacing/endpoint-pace.ts'
import { defaultTrickle, queueWaitMs, startInFlightPerEndpoint } from '../../core/pacing/limits.ts'

/** How endpoints are driven by these settings. */
export const paceBounds = ({
  maxInFlightPerEndpoint,
  retryBudgetPercent,
  retryTiers,
}: Pick<Config, 'maxInFlightPerEndpoint' | 'retryBudgetPercent' | 'retryTiers'>): Omit<
  PaceBounds,
  'group'
> => ({
  breaker: defaultBreakerLimits,
  limit: {
    min: 1,
    start: Math.min(startInFlightPerEndpoint, maxInFlightPerEndpoint),
    max: maxInFlightPerEndpoint,
  },
  budget: { share: retryBudgetPercent / 100, ...defaultTrickle },
  maxWaitMs: queueWaitMs,
  returnDelaysMs: retryTiers.map(({ delayMs }) => delayMs),
})
