import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { stringify } from 'yaml'
import { startChild } from '../../../src/local/child-process.ts'
import { freePort } from '../../../src/local/ports.ts'
import { root } from '../docs.ts'
import { until } from '../until.ts'
import { rulesFile } from './rules.ts'

/** One element of an instant vector. */
export interface Sample {
  metric: Record<string, string>
  value: number
}

export interface RunningPrometheus {
  /** The result of an instant query; rejects with what Prometheus says of an expression that it does not take. */
  query(expr: string): Promise<Sample[]>
}

/** A real Prometheus with the rules that scrapes these ports every second; gone after the test. */
export async function startPrometheus(
  t: TestContext,
  program: string,
  ports: readonly number[],
): Promise<RunningPrometheus> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  await writeFile(
    join(folder, 'prometheus.yml'),
    stringify({
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [join(root, rulesFile)],
      scrape_configs: [
        { job_name: 'postrider', static_configs: [{ targets: ports.map((port) => `127.0.0.1:${port}`) }] },
      ],
    }),
  )
  const port = await freePort()
  const child = await startChild({
    command: program,
    args: [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=warn',
    ],
    cwd: folder,
    env: {},
    logFile: join(folder, 'prometheus.log'),
  })
  t.after(async () => {
    await child.kill()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  const base = `http://127.0.0.1:${port}`
  await until(
    () =>
      fetch(`${base}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      ),
    30_000,
    'Prometheus is ready',
  )
  return {
    async query(expr) {
      const response = await fetch(`${base}/api/v1/query?${new URLSearchParams({ query: expr }).toString()}`)
      const { data, error } = (await response.json()) as {
        data?: { result: { metric: Record<string, string>; value: [number, string] }[] }
        error?: string
      }
      if (!data) throw new Error(`${expr}: ${error}`)
      return data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }))
    },
  }
}
