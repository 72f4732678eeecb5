// Renders ops/kustomize/base/postrider.yaml from the Helm chart: `node scripts/render-kustomize.ts`, after a change of
// the chart. Needs helm: .ci/tools gets it. A test compares the two.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needed } from '../test/support/ops/tools.ts'

const ops = join(import.meta.dirname, '../ops')

/** The chart's manifests without what only Helm reads. The oldest Kubernetes that the chart takes is good for all. */
export function renderKustomizeBase(helm: string): string {
  const args = [
    'template',
    'postrider',
    join(ops, 'helm/postrider'),
    '--skip-tests',
    '--kube-version',
    '1.29.0',
  ]
  const text = execFileSync(helm, [...args, '--values', join(ops, 'kustomize/values.yaml')], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const plain = text
    .replace(/^# Source: .*\n/gm, '')
    .replace(/^ +(app\.kubernetes\.io\/managed-by|helm\.sh\/[\w-]+): .*\n/gm, '')
    .replace(/^ +annotations:\n(?= +# Topics and schemas first)/m, '')
    .replace(/ +$/gm, '')
  return `# Rendered by scripts/render-kustomize.ts: change the chart instead.\n${plain}`
}

if (import.meta.main) {
  const { skip, path } = needed('helm')
  if (skip) throw new Error(skip)
  writeFileSync(join(ops, 'kustomize/base/postrider.yaml'), renderKustomizeBase(path('helm')))
}
