// By itself: destinations and statistics both show it, and one of them imports the other.
import { z } from 'zod'
import { degradedUnder, healthReasons, healthWords } from '../../core/statistics/health.ts'

export const healthSchema = z
  .object({
    word: z
      .enum(healthWords)
      .describe(
        '`gone`: all of its URLs answered 410. `down`: its circuit breakers are open, or its login fails. `failing`: nothing of the last ten ' +
          'minutes succeeded (of the last hour, where nothing ended in ten minutes). `asked_to_wait`: it answers 429. ' +
          `\`degraded\`: less than ${degradedUnder * 100} % succeeded, or not all is well that it needs. \`not_known\`: no ` +
          'forwarder reads its calls. `held`: it is paused. `idle`: nothing ended within an hour.',
      ),
    why: z.enum(healthReasons).nullable().describe('Null where the word says it.'),
    successRate: z
      .number()
      .nullable()
      .describe('Of its attempts, or of its deliveries that ended, whichever is less; null where none did.'),
  })
  .meta({ id: 'Health' })

export const withoutTokenSchema = z
  .object({ since: z.string(), detail: z.string().nullable().describe('Why, in one line.') })
  .nullable()
  .describe('Its login fails: no OAuth2 token is to be had. Null while there is one, or none is needed.')
