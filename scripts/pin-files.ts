// Writes src/local/pins.ts: the SHA-512 of all that Maven brings for the local Kafka and registry. Run it after a change
// of their versions, and compare what it brings with what the projects publish.
//
//   node scripts/pin-files.ts
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { format, resolveConfig } from 'prettier'
import {
  ensureLocalParts,
  newestKafka,
  oldestKafka,
  digestsOf,
  type PinnedFiles,
} from '../src/local/parts.ts'

const file = join(import.meta.dirname, '../src/local/pins.ts')
const cacheDir = await mkdtemp(join(tmpdir(), 'postrider-pins-'))
const pins: Record<string, PinnedFiles> = {}
const record = async (what: string, folder: string) => void (pins[what] = await digestsOf(folder))
try {
  for (const version of [newestKafka, oldestKafka]) {
    const env = { ...process.env, POSTRIDER_KAFKA_VERSION: version }
    await ensureLocalParts({ cacheDir, env, check: record, onProgress: (text) => console.error(text) })
  }
} finally {
  await rm(cacheDir, { recursive: true, force: true })
}
const text = `// Written by scripts/pin-files.ts.
/** What Postrider was tested with, by name and version: SHA-512 in base64, by file name. */
export const pins: Readonly<Record<string, Readonly<Record<string, string>>>> = ${JSON.stringify(pins)}
`
await writeFile(file, await format(text, { ...(await resolveConfig(file)), filepath: file }))
