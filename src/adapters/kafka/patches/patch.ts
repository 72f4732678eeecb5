import { messageOf, PostriderError } from '../../../errors.ts'

/** The only version of kafkajs that the patches are written for. */
export const patchedVersion = '2.2.4'

/** Gives a file of the kafkajs package, such as `src/consumer/batch`, as `require` does. */
export type LoadKafkajs = (file: string) => unknown

export type MemberKind = 'function' | 'object' | 'array' | 'map' | 'number' | 'string' | 'boolean'

/** What a patch relies on in one file of kafkajs: what it replaces as well as what it reads. */
export interface PatchTarget {
  file: string
  /** What the file exports, by path (`prototype.connect`); the empty path is the export itself. */
  members: Readonly<Record<string, MemberKind>>
  /** What its class sets in the constructor. To look at it, one is made with these arguments; that must do nothing. */
  fields?: { args: readonly unknown[]; kinds: Readonly<Record<string, MemberKind>> }
}

/** A change to kafkajs. Its section of docs/kafkajs-patches.md has what it led to, upstream issues and its test. */
export interface Patch {
  /** Its file's name. */
  name: string
  targets: readonly PatchTarget[]
  install(load: LoadKafkajs): void
}

/** A patch that replaces one method of the class that a file exports. */
export interface MethodPatch {
  name: string
  file: string
  method: string
  /** Other methods of the class that it relies on. */
  calls?: readonly string[]
  /** See PatchTarget. */
  fields: Readonly<Record<string, MemberKind>>
  /** What the class is made with to look at its fields, beside a logger. */
  madeWith?: object
  /** What it relies on in other files. */
  elsewhere?: readonly PatchTarget[]
  /** Called on the object in place of the method, which comes before its arguments. */
  instead: (this: never, original: never, ...args: never[]) => unknown
}

export function methodPatch(patch: MethodPatch): Patch {
  const { name, file, method, calls = [], fields, madeWith, elsewhere = [] } = patch
  const instead = patch.instead as (this: unknown, ...args: unknown[]) => unknown
  const methods = [method, ...calls].map((each) => [`prototype.${each}`, 'function'] as const)
  const target: PatchTarget = {
    file,
    members: Object.fromEntries(methods),
    fields: { args: [{ logger: silentLogger, ...madeWith }], kinds: fields },
  }
  return {
    name,
    targets: [target, ...elsewhere],
    install(load) {
      const { prototype } = load(file) as { prototype: Record<string, unknown> }
      const original = prototype[method]
      prototype[method] = function (...args: unknown[]) {
        return instead.call(this, original, ...args)
      }
    },
  }
}

/** For the instances that are made to look at their fields. */
export const silentLogger = {
  namespace: () => silentLogger,
  debug() {},
  info() {},
  warn() {},
  error() {},
}

const remedy = `install kafkajs ${patchedVersion} as it was published (\`npm ci\` in a checkout), and nothing else that changes it; docs/kafkajs-patches.md lists what is patched`

/**
 * Changes nothing.
 * @throws PostriderError `setup` where kafkajs has another version, or lacks a member that a patch relies on
 */
export function checkPatches(patches: readonly Patch[], load: LoadKafkajs): void {
  const { version } = load('package.json') as { version: string }
  if (version !== patchedVersion) {
    const names = patches.map(({ name }) => name).join(', ')
    throw new PostriderError(
      'setup',
      `kafkajs ${version} is installed, but Postrider's patches of it (${names}) are written for exactly ` +
        `${patchedVersion}: ${remedy}`,
    )
  }
  for (const { name, targets } of patches) {
    for (const target of targets) {
      const fault = faultOf(target, load)
      if (fault === null) continue
      throw new PostriderError(
        'setup',
        `Postrider's patch ${name} does not fit the kafkajs that is installed, which says that it is ${version}: ` +
          `${fault}. To go on, ${remedy}`,
      )
    }
  }
}

function faultOf({ file, members, fields }: PatchTarget, load: LoadKafkajs): string | null {
  let exported: unknown
  try {
    exported = load(file)
  } catch (error) {
    return `${file} cannot be loaded (${messageOf(error)})`
  }
  for (const [path, expected] of Object.entries(members)) {
    const found = kindAt(exported, path)
    if (found !== expected) return `${path || 'the export'} of ${file} is ${found}, not ${expected}`
  }
  if (!fields) return null
  let made: unknown
  try {
    made = new (exported as new (...args: readonly unknown[]) => unknown)(...fields.args)
  } catch (error) {
    return `the class of ${file} cannot be constructed (${messageOf(error)})`
  }
  for (const [name, expected] of Object.entries(fields.kinds)) {
    const found = kindAt(made, name)
    if (found !== expected) return `the field ${name} that ${file} sets is ${found}, not ${expected}`
  }
  return null
}

function kindAt(root: unknown, path: string): string {
  let value = root
  for (const name of path === '' ? [] : path.split('.')) {
    if (value === undefined || value === null) return 'missing'
    value = (value as Record<string, unknown>)[name]
  }
  if (value === undefined || value === null) return 'missing'
  if (Array.isArray(value)) return 'array'
  return value instanceof Map ? 'map' : typeof value
}
