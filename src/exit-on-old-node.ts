// The first import of main.ts: on an older Node a later one would fail with an error about a module.
import { nodeFault } from './node-version.ts'

const fault = nodeFault('postrider')
if (fault !== null) {
  console.error(`${fault} (${process.execPath})`)
  process.exit(1)
}
