import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Release } from './versions.ts'

interface Component {
  name: string
  'bom-ref': string
  properties?: unknown
  [field: string]: unknown
}

interface Bom {
  serialNumber: string
  metadata: { timestamp: string; component: Component; [field: string]: unknown }
  components: Component[]
  dependencies: { ref: string; dependsOn?: string[] }[]
  [field: string]: unknown
}

interface LockedPackage {
  version: string
  dev?: boolean
  optional?: boolean
  devOptional?: boolean
}

/** `name@version` of each package that an installation of `postrider` has, by package-lock.json. */
export function installedPackages(lockText: string): Set<string> {
  const { packages } = JSON.parse(lockText) as { packages: Record<string, LockedPackage> }
  return new Set(
    Object.entries(packages)
      .filter(([path, { dev, optional, devOptional }]) => path !== '' && !dev && !optional && !devOptional)
      .map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`),
  )
}

/**
 * What `postrider` consists of when it is installed, in CycloneDX; without what differs from one run to the next: time,
 * number, and the name of the folder. `npm sbom --omit=dev` would also leave out what a development dependency needs too.
 */
export function billOfMaterials(root: string, { version, date }: Release): Bom {
  const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only']
  const bom = JSON.parse(
    execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 }),
  ) as Bom
  const { properties: _, ...component } = bom.metadata.component
  bom.metadata = {
    ...bom.metadata,
    timestamp: date.toISOString(),
    component: { ...component, name: 'postrider' },
  }
  const installed = installedPackages(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const isPart = (ref: string) => ref === component['bom-ref'] || installed.has(ref)
  bom.components = bom.components
    .filter((one) => isPart(one['bom-ref']))
    .map((one) => ({ ...one, scope: 'required', properties: [] }))
  bom.dependencies = bom.dependencies
    .filter(({ ref }) => isPart(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter(isPart) }))
  const hash = createHash('sha256')
    .update(JSON.stringify([version, bom.components]))
    .digest('hex')
  // A UUID of version 8: bits of one's own.
  bom.serialNumber = `urn:uuid:${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-a${hash.slice(17, 20)}-${hash.slice(20, 32)}`
  return bom
}
