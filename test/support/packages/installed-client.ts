import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import { root } from '../docs.ts'
import { temporaryFolder } from '../deployment/rig.ts'

const run = promisify(execFile)

/** A project outside the checkout that has installed the packed client, as its docs say, without a network. */
export async function projectWithClient(t: TestContext): Promise<string> {
  const project = await temporaryFolder(t)
  const filename = await pack('dist/client', project)
  await writeFile(join(project, 'package.json'), '{"private":true}')
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier']
  await run('npm', ['install', '--offline', ...quiet, `./${filename}`], { cwd: project })
  return project
}

/** Unpacks the server's package into the project, with this checkout's copies of its dependencies. */
export async function addServer(project: string): Promise<void> {
  const filename = await pack('dist', project)
  const installed = join(project, 'node_modules/postrider')
  await mkdir(installed, { recursive: true })
  await run('tar', ['-xzf', join(project, filename), '--strip-components=1', '-C', installed])
  await symlink(join(root, 'node_modules'), join(installed, 'node_modules'))
}

async function pack(folder: string, to: string): Promise<string> {
  const built = join(root, folder)
  await assert.doesNotReject(
    readFile(join(built, 'package.json')),
    `${folder} is there: \`npm run build\` makes it, as \`npm test\` does`,
  )
  const { stdout } = await run('npm', ['pack', built, '--json', '--pack-destination', to], { cwd: to })
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
  return filename
}

/** Files by their paths in the project. */
export async function writeFiles(project: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(project, path)), { recursive: true })
    await writeFile(join(project, path), text)
  }
}

/** What TypeScript of this checkout says of a project, with its own tsconfig.json; empty when all is well. */
export async function compile(project: string): Promise<string> {
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  return run(process.execPath, [tsc, '-p', project], { cwd: project }).then(
    ({ stdout }) => stdout,
    (error: unknown) => (error as { stdout: string }).stdout,
  )
}
