import { z } from 'zod'
import { momentOf, momentText } from '../dead-letters/filter.ts'
import { longReads, operation, type Operation } from '../operation.ts'
import { decodeCursor, encodeCursor, pageOf, pageQuery, wrongCursor } from '../schemas.ts'
import { settingsFile } from './file-schema.ts'
import { applyReportSchema, applySettings, exportedSettings } from './file.ts'
import { settingsHistory, historyEntrySchema } from './history.ts'
import { rotateSecrets } from './secrets.ts'
import { SettingsRefused } from './writer.ts'

export const exportSchema = z
  .object({
    version: z.number().int().describe('Of the settings; for `expectedVersion`.'),
    settings: settingsFile,
  })
  .meta({ id: 'ExportedSettings' })

const applyBody = z
  .strictObject({
    settings: settingsFile,
    secrets: z
      .record(z.string(), z.string())
      .meta({ maxProperties: 10_000 })
      .default({})
      .describe(
        'The values of the variables that `settings` refers to. A secret whose variable is not here stays.',
      ),
    dryRun: z.boolean().default(false).describe('Only say what would be changed.'),
    prune: z
      .boolean()
      .default(false)
      .describe('Disable sources and destinations that are not in it. Nothing is ever deleted.'),
    expectedVersion: z
      .number()
      .int()
      .nonnegative()
      .optional()
      .describe('Refuse it where the settings are at another version.'),
    anyKey: z
      .boolean()
      .default(false)
      .describe('As of destinations: encrypt under the first key of SECRETS_KEY in any case.'),
  })
  .meta({ id: 'SettingsApply' })

export const settingsOperations: Operation[] = [
  operation({
    id: 'listSettingsHistory',
    route: 'GET /settings/history',
    command: 'settings history',
    summary: 'Who changed what of the settings, and when, the newest first',
    description: 'The whole log of the settings is read for each page.',
    role: 'reader',
    forLimited: 'nothing',
    limit: longReads,
    query: z.strictObject({
      source: z.string().optional().describe('Only changes of this source.'),
      destination: z.string().optional().describe('Only changes of this destination.'),
      since: z.string().optional().describe(`Since then. ${momentText}`),
      until: z.string().optional().describe(`Before then. ${momentText}`),
      ...pageQuery.shape,
    }),
    success: { status: 200, description: 'A page of them.', schema: pageOf(historyEntrySchema) },
    async handle({ caller: { role }, query, gone }, { readChanges, now }) {
      const { source, destination, since, until, limit, cursor } = query
      const before = cursor === undefined ? null : Number(decodeCursor(cursor))
      if (before !== null && !Number.isSafeInteger(before)) throw wrongCursor()
      const period = { since: momentOf('since', since, now()), until: momentOf('until', until, now()) }
      const asked = { source, destination, limit, before, role, ...period }
      const { data, next } = await settingsHistory(asked, readChanges, gone)
      return { status: 200, body: { data, next: next === null ? null : encodeCursor(String(next)) } }
    },
  }),
  operation({
    id: 'exportSettings',
    route: 'GET /settings/export',
    command: 'settings export',
    summary: 'Plans, sources, destinations, audiences and traits, as `apply` takes them',
    description: 'Secrets are references to variables.',
    role: 'reader',
    forLimited: 'nothing',
    success: { status: 200, description: 'All of them.', schema: exportSchema },
    async handle(_, { settings: { state } }) {
      return { status: 200, body: { version: state.version, settings: exportedSettings(state) } }
    },
  }),
  // Behind the export: the document describes a file as it is taken, where what has a default may be left out.
  operation({
    id: 'applySettings',
    route: 'POST /settings/apply',
    command: 'settings apply',
    flags: { settings: null, secrets: null, expectedVersion: null },
    summary: 'Make the settings what is given, all at once or not at all',
    description:
      'Where anything is wrong in it, or somebody else changes the settings at the same moment, nothing is changed.',
    role: 'admin',
    body: applyBody,
    refusals: [409],
    success: { status: 200, description: 'The difference.', schema: applyReportSchema },
    async handle({ body: { settings: file, secrets: given, ...options } }, services) {
      const variables = new Map(Object.entries(given))
      try {
        const report = await applySettings(file, variables, options, services)
        return { status: 200, body: report }
      } catch (error) {
        if (!(error instanceof SettingsRefused)) throw error
        // Their places are those in the file.
        throw new SettingsRefused(error.faults.map((each) => ({ ...each, field: `settings.${each.field}` })))
      }
    },
  }),
]

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
