import { z } from 'zod'
import { rateOf } from '../../../core/pacing/rate.ts'
import { newWriteKey, sourceKind } from '../../sources.ts'
import { idText, settingOperations } from '../setting-operations.ts'

const maxRateText =
  'The calls that each collector takes of it, a second or a minute: `200/s`, `600/m`. What exceeds it is answered 429.'

export const sourceCreate = z
  .strictObject({
    id: z.string().describe(idText),
    name: z.string().describe('For people.'),
    writeKey: z
      .string()
      .optional()
      .describe('Visible ASCII without a colon. A random one is made unless given.'),
    maxRate: z.string().nullable().optional().describe(maxRateText),
    enabled: z.boolean().default(true),
  })
  .meta({ id: 'SourceCreate' })

const updateBody = z
  .strictObject({
    name: z.string().optional().describe('For people.'),
    writeKey: z.string().optional().describe('Visible ASCII without a colon.'),
    maxRate: z.string().nullable().optional().describe(`${maxRateText} Null takes it away.`),
  })
  .meta({ id: 'SourceUpdate' })

export const sourceOperations = settingOperations({
  ...sourceKind,
  name: 'Source',
  isVersioned: true,
  flags: { enabled: '!disabled' },
  createBody: sourceCreate,
  updateBody,
  texts: {
    show: { summary: 'One source' },
    update: {
      summary: 'Change its name, write key or quota',
      description: 'Changes what is given, and nothing else. A write key that is replaced stops working.',
    },
    enable: { summary: 'Take its calls again' },
    disable: { summary: 'Refuse and skip its calls' },
  },
  create: (body) => ({
    command: {
      type: 'create_source',
      ...body,
      writeKey: body.writeKey ?? newWriteKey(),
      maxRate: body.maxRate && rateOf(body.maxRate),
    },
    asked: body,
  }),
  update: (id, body) => ({
    command: { type: 'update_source', id, ...body, maxRate: body.maxRate && rateOf(body.maxRate) },
  }),
})
