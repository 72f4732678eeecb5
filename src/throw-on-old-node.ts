// The first import of postrider/kafka: on an older Node a later one would fail with an error about a module.
import { nodeFault } from './node-version.ts'

const fault = nodeFault('postrider/kafka')
if (fault !== null) {
  const error = new Error(fault)
  // Its lines would be Node's own, below the one that matters.
  error.stack = `Error: ${fault}`
  throw error
}
