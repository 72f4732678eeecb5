import { variableNames, variables } from '../src/config/variables.ts'

/** What the chart decides itself. */
const fixed: readonly string[] = ['COLLECTOR_PORT', 'CONSOLE_PORT', 'METRICS_PORT', 'STORE_PATH']

/** The settings that the chart takes as values: all but those, and secrets, which it takes by reference. */
const settings: readonly string[] = variableNames.filter(
  (name) => !variables[name].secret && !fixed.includes(name),
)

/** values.schema.json of the chart with the settings that there are; a test compares. */
export function withSettings(schemaText: string): string {
  const schema = JSON.parse(schemaText) as { definitions: { setting: { enum: readonly string[] } } }
  schema.definitions.setting.enum = settings
  return JSON.stringify(schema, null, 2)
}
