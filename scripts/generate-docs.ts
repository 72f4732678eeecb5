// Writes the generated tables into docs/, between their markers, and the names of settings into the chart's schema: `node scripts/generate-docs.ts`, after a change of
// src/config/variables.ts, src/core/permissions.ts or an operation. test/project/docs.test.ts,
// test/project/secured-clusters.test.ts and test/console/document.test.ts compare the two.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { commandsTable } from './commands-table.ts'
import { permissionsTable } from './permissions-table.ts'
import { rolesTable } from './roles-table.ts'
import { format } from 'prettier'
import { withSettings } from './settings-schema.ts'
import { settingsTables } from './settings-tables.ts'

const tables: [file: string, marker: string, table: string][] = [
  ['docs/configuration.md', 'settings', settingsTables()],
  ['docs/secured-clusters.md', 'permissions', permissionsTable()],
  ['docs/admin-api.md', 'roles', rolesTable()],
  ['docs/commands.md', 'commands', commandsTable()],
]
for (const [name, marker, table] of tables) {
  const file = join(import.meta.dirname, '..', name)
  const text = await readFile(file, 'utf8')
  const written = text.replace(
    new RegExp(`(<!-- ${marker} -->\n).*?(<!-- /${marker} -->)`, 's'),
    (_, before: string, after: string) => `${before}\n${table}\n\n${after}`,
  )
  if (written === text) console.log(`${name}: nothing to change`)
  else await writeFile(file, written)
}

const schemaFile = join(import.meta.dirname, '../ops/helm/postrider/values.schema.json')
const schema = await readFile(schemaFile, 'utf8')
await writeFile(schemaFile, await format(withSettings(schema), { parser: 'json', printWidth: 110 }))
