/** The first Node that Postrider's own processes are tested on. The client alone, without Kafka, runs on Node 20 too. */
export const minNodeMajor = 24

/** Why something cannot run on this Node, in one line, or null when it can. */
export function nodeFault(what: string, version = process.versions.node): string | null {
  if (Number.parseInt(version, 10) >= minNodeMajor) return null
  return `${what} needs Node ${minNodeMajor} or later, and this is Node ${version}`
}
