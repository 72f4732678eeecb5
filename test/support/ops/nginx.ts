import { readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { startChild } from '../../../src/local/child-process.ts'
import { freePort } from '../../../src/local/ports.ts'
import { temporaryFolder } from '../deployment/rig.ts'
import { until } from '../until.ts'
import { needed } from './tools.ts'

/**
 * nginx on a port of loopback, stopped after the test.
 * @param files that its settings name, by their names
 * @param server what stands in its one server, beside where it listens
 */
export async function startNginx(
  t: TestContext,
  files: Readonly<Record<string, string>>,
  server: string,
): Promise<{ port: number }> {
  const folder = await temporaryFolder(t)
  const port = await freePort()
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${name};`)
    .join('\n')
  const http = `access_log off;\n${temporary}\nserver {\nlisten 127.0.0.1:${port} ssl;\n${server}\n}`
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off;\npid nginx.pid;\nerror_log stderr;\nevents {}\nhttp {\n${http}\n}\n`,
  )
  const logFile = join(folder, 'nginx.log')
  const child = await startChild({
    command: needed('nginx').path('nginx'),
    args: ['-p', '.', '-c', 'nginx.conf', '-e', 'stderr'],
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', HOME: folder },
    logFile,
  })
  t.after(() => child.kill())
  await until(async () => {
    if (!child.isRunning()) throw new Error(await readFile(logFile, 'utf8'))
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    const listens = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return listens
  })
  return { port }
}
