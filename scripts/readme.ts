// Writes what is made of the code into README.md and docs/, between their markers: `node scripts/readme.ts`, after a
// change of src/config/variables.ts or src/core/permissions.ts. test/project/readme.test.ts and
// test/project/secured-clusters.test.ts compare the two.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { settingsTable } from '../src/config/table.ts'
import { permissionsTable } from './permissions-table.ts'

const tables: [file: string, marker: string, table: string][] = [
  ['README.md', 'settings', settingsTable()],
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
