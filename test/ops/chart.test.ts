import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { before, test } from 'node:test'
import { promisify } from 'node:util'
import { fastify } from 'fastify'
import { parse } from 'yaml'
import { renderKustomizeBase } from '../../scripts/render-kustomize.ts'
import { withSettings } from '../../scripts/settings-schema.ts'
import { ClientAddress } from '../../src/adapters/http/client-address.ts'
import { addSdkRoutes } from '../../src/adapters/http/sdk-routes.ts'
import { pixelRoutes, postRoutes } from '../../src/collector/routes.ts'
import { loadConfig } from '../../src/config/config.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'
import { codeBlocks, readPage } from '../support/docs.ts'
import {
  chartFolder,
  isValidCustomResource,
  kubernetesValidator,
  render,
  type Manifest,
} from '../support/ops/chart.ts'
import { dashboardFile } from '../support/ops/dashboard.ts'
import { readRules } from '../support/ops/rules.ts'
import { needed } from '../support/ops/tools.ts'
import { createAuthority } from '../support/secured/certificates.ts'
import { silentLog } from '../support/silent-log.ts'

const tools = needed('helm', 'kubernetes-schemas')
const { skip } = tools
const helm = () => tools.path('helm')

const addresses = { KAFKA_BROKERS: 'kafka:9092', SCHEMA_REGISTRY_URL: 'http://registry:8081' }
const monitoring = {
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
  prometheusRule: { enabled: true, runbooks: 'https://wiki.example/operations' },
  dashboard: { enabled: true },
}

const cases: Record<string, object> = {
  defaults: { config: addresses },
  everything: {
    config: { ...addresses, TOPIC_PREFIX: 'eu.', GROUP_ID: 'eu', REPLICATION_FACTOR: 3, KAFKA_SSL: true },
    image: {
      repository: 'registry.example/postrider',
      digest: `sha256:${'a'.repeat(64)}`,
      pullSecrets: ['pull'],
    },
    secrets: {
      secretsKey: { name: 'keys', key: 'k' },
      adminToken: { name: 'keys', key: 't' },
      consoleOidcClientSecret: { name: 'oidc', key: 'client-secret' },
      mailSmtpUrl: { name: 'mail', key: 'url' },
      kafkaPassword: { name: 'kafka', key: 'password' },
      kafkaOauthClientSecret: { name: 'oauth', key: 'client-secret' },
      registryPassword: { name: 'registry', key: 'password' },
      webhookProxy: { name: 'proxy', key: 'url' },
      kafkaTls: { name: 'kafka-tls', hasClientCertificate: true },
    },
    serviceAccount: { annotations: { note: 'x' } },
    podAnnotations: { note: 'x' },
    podLabels: { team: 'data' },
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'dedicated', operator: 'Exists' }],
    affinity: { podAntiAffinity: {} },
    priorityClassName: 'high',
    collector: {
      // Helm reads it as a float.
      config: { TRUSTED_PROXIES: '10.0.0.0/8', SOURCE_MAX_RATE: 1_000_000 },
      service: { type: 'LoadBalancer', port: 443, annotations: { internal: 'true' } },
      ingress: { enabled: true, className: 'nginx', host: 'calls.example', tlsSecret: 'calls-tls' },
    },
    console: { replicas: 2, podDisruptionBudget: { enabled: true, maxUnavailable: 1 } },
    networkPolicy: {
      collectorFrom: [{ ipBlock: { cidr: '0.0.0.0/0' } }],
      consoleFrom: [{ namespaceSelector: { matchLabels: { team: 'data' } } }],
      metricsFrom: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }],
    },
    keda: {
      enabled: true,
      maxReplicas: 24,
      lagThreshold: 2_000_000,
      authenticationRef: 'kafka',
      kafkaMetadata: { tls: 'enable' },
      prometheus: 'http://prometheus:9090',
    },
    ...monitoring,
  },
  'forwarders alone': {
    config: addresses,
    collector: { enabled: false },
    console: { enabled: false },
    setup: { enabled: false },
    serviceAccount: { create: false, name: 'existing' },
    networkPolicy: { enabled: false },
    topologySpreadConstraints: [],
    forwarder: { replicas: 12, podDisruptionBudget: { enabled: false } },
  },
  'a store that lasts': { config: addresses, console: { existingClaim: 'store', replicas: 3 } },
  'other names': {
    config: addresses,
    fullnameOverride: 'calls',
    serviceMonitor: { enabled: true, job: 'calls' },
    networkPolicy: { denied4: [], denied6: [] },
  },
}

const rendered = new Map<string, Manifest[]>()
before(async () => {
  if (skip) return
  for (const [name, values] of Object.entries(cases)) rendered.set(name, await render(helm(), values))
})

interface Container {
  name: string
  image: string
  env?: { name: string; value: string }[]
  securityContext: Record<string, unknown>
  resources: { limits?: { memory?: string } }
  volumeMounts?: { name: string; mountPath: string }[]
  ports?: { name: string; containerPort: number }[]
  readinessProbe?: { httpGet: { path: string; port: string } }
  livenessProbe?: { httpGet: { path: string; port: string } }
}
interface PodSpec {
  securityContext: Record<string, unknown>
  automountServiceAccountToken: boolean
  terminationGracePeriodSeconds?: number
  topologySpreadConstraints?: unknown[]
  containers: Container[]
  volumes?: {
    name: string
    projected?: { sources: { secret: { name: string; items: { key: string; path: string }[] } }[] }
  }[]
}
const podOf = ({ kind, spec }: Manifest): PodSpec | null => {
  if (kind === 'Pod') return spec as PodSpec
  if (kind !== 'Deployment' && kind !== 'Job') return null
  return (spec as { template: { spec: PodSpec } }).template.spec
}
const find = (name: string, kind: string, part?: string): Manifest => {
  const found = rendered
    .get(name)!
    .find(
      (one) => one.kind === kind && (!part || one.metadata.labels?.['app.kubernetes.io/component'] === part),
    )
  assert.ok(found, `${kind} ${part ?? ''} of ${name}`)
  return found
}

test('Kubernetes 1.29 to 1.37 accept every manifest, field by field', { skip, timeout: 300_000 }, () => {
  for (let minor = 29; minor <= 37; minor++) {
    const fault = kubernetesValidator(join(tools.schemas, `v1.${minor}.0-local-strict`))
    for (const manifest of [...rendered.values()].flat())
      if (!isValidCustomResource(manifest)) assert.equal(fault(manifest), null, `Kubernetes 1.${minor}`)
    const wrong = structuredClone(find('defaults', 'Deployment')) as Manifest & { spec: object }
    Object.assign(wrong.spec, { replicaCount: 2 })
    assert.match(fault(wrong)!, /additional properties/)
  }
})

test('the custom resources of KEDA and of the Prometheus operator are valid', { skip }, () => {
  const kinds = rendered
    .get('everything')!
    .filter(isValidCustomResource)
    .map(({ kind }) => kind)
  assert.deepEqual(kinds.sort(), ['PrometheusRule', 'ScaledObject', 'ServiceMonitor'])
  const wrong = structuredClone(find('everything', 'ScaledObject')) as Manifest & { spec: object }
  Object.assign(wrong.spec, { minReplicaCount: 'two' })
  assert.throws(() => isValidCustomResource(wrong), /minReplicaCount/)
})

test(
  'every pod runs without rights, on a file system that it cannot write to, and within a limit of memory',
  {
    skip,
  },
  () => {
    const pods = [...rendered.values()].flat().flatMap((manifest) => podOf(manifest) ?? [])
    assert.ok(pods.length > 12)
    for (const { securityContext, automountServiceAccountToken, containers } of pods) {
      assert.equal(securityContext.runAsNonRoot, true)
      assert.ok(Number(securityContext.runAsUser) > 0)
      assert.deepEqual(securityContext.seccompProfile, { type: 'RuntimeDefault' })
      assert.equal(automountServiceAccountToken, false)
      for (const { securityContext, resources } of containers) {
        assert.deepEqual(securityContext, {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
        assert.ok(resources.limits?.memory)
      }
    }
  },
)

const secretPaths = (name: string, kind: string, part: string) =>
  podOf(find(name, kind, part))!.volumes!.flatMap(({ projected }) =>
    (projected?.sources ?? []).flatMap(({ secret }) => secret.items.map(({ path }) => path)),
  )

test('each part gets the secrets that it needs, by reference, and no manifest holds one', { skip }, () => {
  assert.deepEqual(secretPaths('defaults', 'Deployment', 'collector'), [])
  assert.deepEqual(secretPaths('defaults', 'Deployment', 'forwarder'), ['secrets-key'])
  assert.deepEqual(secretPaths('defaults', 'Deployment', 'console'), ['secrets-key', 'admin-token'])
  assert.deepEqual(secretPaths('defaults', 'Job', 'setup'), [])
  const kafka = [
    'kafka-password',
    'kafka-oauth-client-secret',
    'registry-password',
    'ca.crt',
    'tls.crt',
    'tls.key',
  ]
  assert.deepEqual(secretPaths('everything', 'Deployment', 'collector'), kafka)
  assert.deepEqual(secretPaths('everything', 'Job', 'setup'), kafka)
  for (const path of ['console-oidc-client-secret', 'mail-smtp-url']) {
    const has = (part: string) => secretPaths('everything', 'Deployment', part).includes(path)
    assert.deepEqual([has('console'), has('forwarder')], [true, false], path)
  }
  assert.ok(![...rendered.values()].flat().some(({ kind }) => kind === 'Secret'))
})

test(
  'Postrider accepts the settings that each container gets, and listens where the Service and the probes look',
  {
    skip,
  },
  () => {
    for (const manifests of rendered.values())
      for (const manifest of manifests) {
        if (manifest.kind !== 'Deployment') continue
        for (const { name, env = [], ports = [], readinessProbe, livenessProbe } of podOf(manifest)!
          .containers) {
          // The files are there in the pod.
          const values = Object.fromEntries(
            env.filter(({ name }) => !name.endsWith('_FILE')).map(({ name, value }) => [name, value]),
          )
          const config = loadConfig(values)
          const port = Object.fromEntries(ports.map(({ name, containerPort }) => [name, containerPort]))
          assert.equal(port.metrics, config.metricsPort)
          if (name === 'collector') assert.equal(port.http, config.collectorPort)
          if (name === 'console')
            assert.deepEqual([port.http, config.consoleHost], [config.consolePort, '::'])
          assert.deepEqual(readinessProbe!.httpGet, { path: '/readyz', port: 'metrics' })
          assert.deepEqual(livenessProbe!.httpGet, { path: '/healthz', port: 'metrics' })
        }
      }
  },
)

test('the Ingress routes every path that the collector serves, in any case', { skip }, () => {
  const paths = [...postRoutes.keys(), ...[...pixelRoutes.keys()].map((type) => `/v1/pixel/${type}`)]
  const app = fastify()
  app.addHook('onRoute', ({ url }) => void paths.push(url))
  addSdkRoutes(app, {
    collector: () => null,
    clientAddress: new ClientAddress([]),
    collectorUrl: null,
    servesBrowserSdk: true,
    log: silentLog,
    send() {},
  })
  for (const path of ['/v1/batch', '/sourceConfig', '/analytics.js/v1/:writeKey/:file'])
    assert.ok(paths.includes(path), path)
  const { rules } = find('everything', 'Ingress').spec as {
    rules: { http: { paths: { path: string; pathType: string }[] } }[]
  }
  const routed = rules.flatMap(({ http }) => http.paths)
  // By whole elements of the path, and by their case.
  const isRouted = (path: string) =>
    routed.some((rule) => {
      assert.equal(rule.pathType, 'Prefix')
      return `${path}/`.startsWith(`${rule.path.replace(/\/$/, '')}/`)
    })
  assert.deepEqual(
    paths.flatMap((path) => [path, path.toUpperCase()]).filter((path) => !isRouted(path)),
    [],
  )
})

test(
  'an update takes no capacity away, and a pod has longer to stop than its process needs',
  { skip },
  () => {
    for (const part of ['collector', 'forwarder', 'console']) {
      const { spec } = find('defaults', 'Deployment', part) as unknown as {
        spec: { strategy: object; template: { spec: PodSpec } }
      }
      assert.deepEqual(spec.strategy, {
        type: 'RollingUpdate',
        rollingUpdate: { maxSurge: 1, maxUnavailable: 0 },
      })
      assert.ok(spec.template.spec.terminationGracePeriodSeconds! >= 15 + 5)
      assert.equal(spec.template.spec.topologySpreadConstraints!.length, 2)
    }
    const kept = find('a store that lasts', 'Deployment', 'console').spec as {
      strategy: object
      replicas: number
    }
    assert.deepEqual([kept.strategy, kept.replicas], [{ type: 'Recreate' }, 1], 'two pods at one volume')
    const { annotations } = find('defaults', 'Job', 'setup').metadata
    assert.equal(annotations!['helm.sh/hook'], 'pre-install,pre-upgrade')
    for (const part of ['collector', 'forwarder']) find('defaults', 'PodDisruptionBudget', part)
  },
)

test(
  'a pod reaches the DNS of its cluster, and not the metadata service of a cloud, and the setup accepts no connection',
  { skip },
  () => {
    const policies = rendered.get('defaults')!.filter(({ kind }) => kind === 'NetworkPolicy')
    assert.equal(policies.length, 4)
    for (const { spec } of policies) {
      const { egress, policyTypes } = spec as {
        egress: { to: { ipBlock?: { cidr: string; except?: string[] } }[]; ports?: { port: number }[] }[]
        policyTypes: string[]
      }
      assert.deepEqual(policyTypes, ['Ingress', 'Egress'])
      const [dns, anywhere] = [egress.filter(({ ports }) => ports), egress.filter(({ ports }) => !ports)].map(
        (rules) => rules.flatMap(({ to }) => to.flatMap(({ ipBlock }) => ipBlock ?? [])),
      )
      const blocks = anywhere!
      // The cache of a node lies among the addresses that no pod may reach otherwise.
      assert.deepEqual(dns, [{ cidr: '169.254.20.10/32' }])
      assert.ok(egress.every(({ ports = [] }) => ports.every(({ port }) => port === 53)))
      assert.deepEqual(
        blocks.map(({ cidr }) => cidr),
        ['0.0.0.0/0', '::/0'],
      )
      assert.ok(blocks[0]!.except!.includes('169.254.0.0/16'))
      assert.ok(blocks[1]!.except!.includes('fd00:ec2::254/128'))
    }
    assert.deepEqual((find('defaults', 'NetworkPolicy', 'setup').spec as { ingress: [] }).ingress, [])
  },
)

test(
  'KEDA scales forwarders by lag while they are busy, from 2 to the number of partitions, and slowly down',
  { skip },
  () => {
    const { spec } = find('everything', 'ScaledObject') as unknown as {
      spec: {
        minReplicaCount: number
        maxReplicaCount: number
        scaleTargetRef: { name: string }
        triggers: { type: string; name?: string; metadata: Record<string, string> }[]
        advanced: {
          scalingModifiers: { formula: string; target: string }
          horizontalPodAutoscalerConfig: { behavior: Record<string, { stabilizationWindowSeconds: number }> }
        }
      }
    }
    const deployment = find('everything', 'Deployment', 'forwarder')
    assert.equal(spec.scaleTargetRef.name, deployment.metadata.name)
    assert.ok(!('replicas' in (deployment.spec as object)), 'the chart would set back what KEDA has scaled')
    assert.deepEqual([spec.minReplicaCount, spec.maxReplicaCount], [2, 24])
    const [kafka, prometheus, cpu] = spec.triggers
    assert.deepEqual([kafka!.type, prometheus!.type, cpu!.type], ['kafka', 'prometheus', 'cpu'])
    assert.deepEqual([kafka!.name, prometheus!.name], ['lag', 'cpu'])
    assert.match(prometheus!.metadata.query!, /job="default\/blue", part="forwarder"/)
    const { formula, target } = spec.advanced.scalingModifiers
    assert.deepEqual([formula, target], ['cpu >= 80 ? lag : 0', '2000000'])
    const { topic, consumerGroup, lagThreshold, excludePersistentLag, scaleToZeroOnInvalidOffset } =
      kafka!.metadata
    assert.deepEqual(
      [topic, consumerGroup, lagThreshold, excludePersistentLag, scaleToZeroOnInvalidOffset],
      ['eu.analytics.calls', 'eu', '2000000', 'true', 'false'],
    )
    const { scaleUp, scaleDown } = spec.advanced.horizontalPodAutoscalerConfig.behavior
    assert.deepEqual([scaleUp!.stabilizationWindowSeconds, scaleDown!.stabilizationWindowSeconds], [60, 600])
  },
)

test(
  'all parts of a release are one job, and releases of one name in two namespaces are two',
  { skip },
  () => {
    const jobOf = (name: string) => {
      const { endpoints } = find(name, 'ServiceMonitor').spec as {
        endpoints: { relabelings: { targetLabel: string; replacement: string }[] }[]
      }
      return endpoints.flatMap(({ relabelings }) => relabelings)
    }
    assert.deepEqual(jobOf('everything'), [{ targetLabel: 'job', replacement: 'default/blue' }])
    assert.deepEqual(jobOf('other names'), [{ targetLabel: 'job', replacement: 'calls' }])
  },
)

test('the chart brings all rules, with runbooks at the given address, and the dashboard', { skip }, () => {
  const { groups } = find('everything', 'PrometheusRule').spec as {
    groups: { rules: { alert?: string; expr: string; annotations?: { runbook_url: string } }[] }[]
  }
  const rules = groups.flatMap((group) => group.rules)
  const { recordings, alerts } = readRules()
  assert.deepEqual(
    rules.map(({ expr }) => expr),
    [...recordings, ...alerts].map(({ expr }) => expr),
  )
  for (const { alert, annotations } of rules)
    if (alert)
      assert.equal(annotations!.runbook_url, `https://wiki.example/operations#${alert.toLowerCase()}`)
  const { data } = rendered.get('everything')!.find(({ kind }) => kind === 'ConfigMap') as unknown as {
    data: Record<string, string>
  }
  assert.deepEqual(JSON.parse(data['postrider.json']!), JSON.parse(readPage(dashboardFile)))
})

test(
  'the example of docs/kubernetes.md logs in to Kafka over TLS, with the Secrets that its commands make',
  { skip },
  async (t) => {
    const page = ['docs/kubernetes.md']
    const made = new Map(
      codeBlocks('sh', page)
        .flatMap((code) => code.split('\n'))
        .flatMap((line) => {
          const secret = /^kubectl create secret generic (\S+) (.*)$/.exec(line)
          const keys = [...(secret?.[2] ?? '').matchAll(/--from-file=([\w.-]+)=/g)].map(([, key]) => key!)
          return secret ? [[secret[1]!, keys] as const] : []
        }),
    )
    assert.deepEqual([...made.keys()].sort(), ['postrider', 'postrider-kafka'])
    const authority = await createAuthority(t)
    const folder = await temporaryFolder(t)
    const contents = [
      ['secrets-key', 'ab'.repeat(32)],
      ['admin-token', 'token-'.repeat(8)],
      ['kafka-password', 'a-password'],
      ['ca.crt', authority.ca],
    ] as const
    for (const [name, text] of contents) await writeFile(join(folder, name), `${text}\n`)
    const [code, ...others] = codeBlocks('yaml', page).filter((block) => block.includes('KAFKA_SASL'))
    assert.ok(code && others.length === 0)
    const manifests = await render(helm(), parse(code) as object)
    const fault = kubernetesValidator(join(tools.schemas, 'v1.37.0-local-strict'))
    let pods = 0
    for (const manifest of manifests) {
      assert.equal(fault(manifest), null)
      const pod = podOf(manifest)
      if (pod === null || manifest.kind === 'Pod') continue
      pods++
      for (const { secret } of pod.volumes!.flatMap(({ projected }) => projected?.sources ?? []))
        for (const { key } of secret.items)
          assert.ok(made.get(secret.name)?.includes(key), `${secret.name} ${key}`)
      const env = pod.containers.flatMap(({ env }) => env ?? [])
      const values = env.map(({ name, value }) =>
        name.endsWith('_FILE') ? [name, join(folder, basename(value))] : [name, value],
      )
      const { kafka } = loadConfig(Object.fromEntries(values) as Record<string, string>)
      assert.equal(kafka.sasl?.mechanism, 'scram-sha-512')
      assert.ok(kafka.ssl)
    }
    assert.equal(pods, 4, 'three parts and setup')
  },
)

const refused: [values: object, says: RegExp][] = [
  [{}, /KAFKA_BROKERS/],
  [{ config: { ...addresses, SCHEMA_REGISTRY_URL: 'registry:8081' } }, /SCHEMA_REGISTRY_URL/],
  [{ config: { ...addresses, ADMIN_TOKEN: 'secret' } }, /ADMIN_TOKEN/],
  [{ config: { ...addresses, KAFKA_BROKER: 'k:9092' } }, /KAFKA_BROKER'/],
  [{ config: addresses, replicas: 3 }, /'replicas' not allowed/],
  [{ config: addresses, collector: { replicas: 0 } }, /collector\/replicas/],
  [{ config: addresses, secrets: { adminToken: { name: '', key: 'k' } } }, /adminToken\/name/],
  [{ config: addresses, image: { digest: 'latest' } }, /image\/digest/],
  [{ config: addresses, keda: { minReplicas: 0 } }, /keda\/minReplicas/],
  [{ config: addresses, terminationGracePeriodSeconds: 5 }, /terminationGracePeriodSeconds/],
  [
    { config: addresses, collector: { ingress: { enabled: true, tlsSecret: 'tls' } } },
    /collector\.ingress\.host/,
  ],
]
test('wrong values are refused by name', { skip }, async () => {
  for (const [values, says] of refused)
    await assert.rejects(render(helm(), values), says, JSON.stringify(values))
})

test('the schema of the values names the settings that there are', () => {
  const file = 'ops/helm/postrider/values.schema.json'
  const [found, expected] = [readPage(file), withSettings(readPage(file))].map(
    (text) => JSON.parse(text) as object,
  )
  assert.deepEqual(found, expected, 'run `node scripts/generate-docs.ts`')
})

test(
  'the chart has the version of the package, and helm finds nothing to complain about',
  { skip },
  async () => {
    const { version } = JSON.parse(readPage('package.json')) as { version: string }
    const chart = parse(readPage('ops/helm/postrider/Chart.yaml')) as { version: string; appVersion: string }
    assert.deepEqual([chart.version, chart.appVersion], [version, version])
    const set = Object.entries(addresses).flatMap(([name, value]) => ['--set', `config.${name}=${value}`])
    await promisify(execFile)(helm(), ['lint', '--strict', '--kube-version', '1.29.0', ...set, chartFolder])
  },
)

test('the Kustomize base is what the chart renders', { skip }, () => {
  const base = readPage('ops/kustomize/base/postrider.yaml')
  assert.equal(base, renderKustomizeBase(helm()), 'run `node scripts/render-kustomize.ts`')
  assert.doesNotMatch(base, /helm\.sh|Helm/)
  const { resources } = parse(readPage('ops/kustomize/base/kustomization.yaml')) as { resources: string[] }
  assert.deepEqual(resources, ['postrider.yaml'])
})
