import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import Ajv from 'ajv'
import { ScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1'
import {
  PrometheusRule,
  ServiceMonitor,
} from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1'
import { parseAllDocuments, stringify } from 'yaml'
import { root } from '../docs.ts'

const run = promisify(execFile)

export const chartFolder = join(root, 'ops/helm/postrider')

export interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; labels?: Record<string, string>; annotations?: Record<string, string> }
  [field: string]: unknown
}

/** The manifests that helm makes of these values. Rejects with what helm says of values that it refuses. */
export async function render(helm: string, values: object): Promise<Manifest[]> {
  const args = ['template', 'blue', chartFolder, '--kube-version', '1.29.0', '--values', '-']
  const running = run(helm, args, { maxBuffer: 1 << 26 })
  running.child.stdin!.end(stringify(values))
  const { stdout } = await running.catch((error: { stderr: string }) => {
    throw new Error(error.stderr.replace(/^walk\.go.*\n/gm, ''))
  })
  return parseAllDocuments(stdout)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null)
}

const customKinds: Record<string, new (data: never) => { validate(): void }> = {
  PrometheusRule,
  ScaledObject,
  ServiceMonitor,
}

/** Throws for a custom resource that its operator's schema refuses. False for what is none. */
export function isValidCustomResource(manifest: Manifest): boolean {
  const Model = customKinds[manifest.kind]
  if (!Model) return false
  new Model(manifest as never).validate()
  return true
}

/**
 * Checks manifests against the strict JSON schemas of one version of Kubernetes: fields that it does not know are faults.
 * @param folder that version's schemas
 */
export function kubernetesValidator(folder: string): (manifest: Manifest) => string | null {
  const ajv = new Ajv.default({
    strict: false,
    validateFormats: false,
    logger: false,
    code: { optimize: false },
  })
  const read = (file: string) => {
    const { $schema: _, ...schema } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as {
      $schema?: string
    }
    return schema
  }
  ajv.addSchema(read('_definitions.json'), '_definitions.json')
  const known = new Set<string>()
  return (manifest) => {
    const [version, group] = manifest.apiVersion.split('/').reverse() as [string, string | undefined]
    const file = [manifest.kind.toLowerCase(), ...(group ? [group.split('.')[0]!] : []), version].join('-')
    if (!known.has(file)) ajv.addSchema(read(`${file}.json`), file)
    known.add(file)
    return ajv.validate(file, manifest)
      ? null
      : `${manifest.kind} ${manifest.metadata.name}: ${ajv.errorsText()}`
  }
}
