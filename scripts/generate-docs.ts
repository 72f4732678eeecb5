// Writes the generated tables into docs/, between their markers: `node scripts/generate-docs.ts`, after a change of
// src/config/variables.ts or src/core/permissions.ts. test/project/docs.test.ts and
// test/project/secured-clusters.test.ts compare the two.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { permissionsTable } from './permissions-table.ts'
import { settingsTables } from './settings-tables.ts'

const tables: [file: string, marker: string, table: string][] = [
  ['docs/configuration.md', 'settings', settingsTables()],
  ['docs/secured-clusters.md', 'permissions', permissionsTable()],
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
