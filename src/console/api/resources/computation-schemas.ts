import { z } from 'zod'
import { idText } from '../setting-operations.ts'

export const computationCreate = z
  .strictObject({
    id: z.string().describe(idText),
    name: z.string().describe('For people; its snake_case form is the property.'),
    sourceId: z.string().describe('Whose destinations are notified.'),
  })
  .meta({ id: 'ComputationCreate' })
