// Writes the table of settings into README.md, between its markers: `node scripts/readme.ts`, after a change of
// src/config/variables.ts. test/project/readme.test.ts compares the two.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { settingsTable } from '../src/config/table.ts'

const file = join(import.meta.dirname, '..', 'README.md')
const readme = await readFile(file, 'utf8')
const written = readme.replace(
  /(<!-- settings -->\n).*?(<!-- \/settings -->)/s,
  (_, before: string, after: string) => `${before}\n${settingsTable()}\n\n${after}`,
)
if (written === readme) console.log('README.md: nothing to change')
else await writeFile(file, written)
