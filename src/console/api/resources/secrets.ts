import { z } from 'zod'
import { rotateSecrets } from '../../secrets-rotation.ts'
import { operation, type Operation } from '../operation.ts'

const rotationSchema = z
  .object({
    dryRun: z.boolean(),
    keyId: z.string().describe('The first key of SECRETS_KEY, which encrypts.'),
    rotated: z.number().int().describe('Secrets that were, or in a dry run would be, encrypted again.'),
    complete: z.boolean().describe('Whether none is left that lies under an older key and cannot be opened.'),
    destinations: z.array(
      z.object({
        id: z.string(),
        rotated: z.number().int(),
        current: z.number().int().describe('Lay under that key already.'),
        problems: z.array(z.string()).describe('Why others could not be encrypted again.'),
      }),
    ),
  })
  .meta({ id: 'SecretsRotation' })

export const secretOperations: Operation[] = [
  operation({
    id: 'rotateSecrets',
    route: 'POST /secrets/rotate',
    command: 'secrets rotate',
    role: 'admin',
    summary: 'Encrypt all shared secrets and header values again under the first key of SECRETS_KEY',
    description: 'Broken off, it goes on where it was when it is repeated.',
    body: z
      .strictObject({ dryRun: z.boolean().default(false).describe('Only say how many it would be.') })
      .meta({ id: 'SecretsRotate' }),
    success: { status: 200, description: 'What was done.', schema: rotationSchema },
    refusals: [409],
    async handle({ body: { dryRun } }, { settings, secrets }) {
      const { keyId, rotated, destinations } = await rotateSecrets(settings, secrets, { dryRun })
      const complete = destinations.every(({ problems }) => problems.length === 0)
      return { status: 200, body: { dryRun, keyId, rotated, complete, destinations } }
    },
  }),
]
