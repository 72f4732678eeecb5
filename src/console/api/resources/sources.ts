import { z } from 'zod'
import { newWriteKey, sourceKind } from '../../sources.ts'
import { idText, settingOperations } from '../setting-operations.ts'

const createBody = z
  .strictObject({
    id: z.string().describe(idText),
    name: z.string().describe('For people.'),
    writeKey: z
      .string()
      .optional()
      .describe('Visible ASCII without a colon. A random one is made unless given.'),
    enabled: z.boolean().default(true),
  })
  .meta({ id: 'SourceCreate' })

const updateBody = z
  .strictObject({ name: z.string().optional(), writeKey: z.string().optional() })
  .meta({ id: 'SourceUpdate' })

export const sourceOperations = settingOperations({
  ...sourceKind,
  name: 'Source',
  isVersioned: true,
  createBody,
  updateBody,
  texts: {
    show: { summary: 'One source' },
    update: {
      summary: 'Change its name or write key',
      description: 'Changes what is given, and nothing else. The old write key stops to work.',
    },
    enable: { summary: 'Take its calls again' },
    disable: { summary: 'Refuse and skip its calls' },
  },
  create: (body) => ({
    command: { type: 'create_source', ...body, writeKey: body.writeKey ?? newWriteKey() },
    asked: body,
  }),
  update: (id, body) => ({ command: { type: 'update_source', id, ...body } }),
})
