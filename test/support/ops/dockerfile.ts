// Does what a Dockerfile says, without a container engine: each stage is a folder that stands for its root.
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile } from 'node:fs/promises'
import { basename, delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Instruction {
  name: string
  rest: string
}

/** What an image is started with. */
export interface BuiltImage {
  /** The folder that stands for `/`. */
  root: string
  workdir: string
  env: Record<string, string>
  user: string
  entrypoint: string[]
  command: string[]
  healthcheck: string[]
}

/** Comments are left out, and lines that end with a backslash are joined with the next. */
export function instructionsOf(dockerfile: string): Instruction[] {
  return dockerfile
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => /^(\w+) +(.*)$/.exec(line)!)
    .map(([, name, rest]) => ({ name: name!, rest: rest!.trim() }))
}

export interface BuildOptions {
  /** The folder with the Dockerfile and .dockerignore. */
  context: string
  /** An empty folder. */
  to: string
  /** Stands for the user that the base image has, as `uid:gid`. */
  owner: string
}

/** Throws for an instruction that it cannot do, so that none is passed over. */
export async function buildImage({ context, to, owner }: BuildOptions): Promise<BuiltImage> {
  const sent = (await readFile(join(context, '.dockerignore'), 'utf8'))
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1))
  const stages = new Map<string, BuiltImage>()
  let image: BuiltImage | null = null
  for (const { name, rest } of instructionsOf(await readFile(join(context, 'Dockerfile'), 'utf8'))) {
    if (name === 'ARG') continue
    if (name === 'FROM') {
      image = await newStage(join(to, `stage-${stages.size}`))
      stages.set(/ AS (\w+)$/.exec(rest)?.[1] ?? String(stages.size), image)
      continue
    }
    const stage: BuiltImage = image!
    const inside = (path: string) =>
      path.startsWith('/') ? join(stage.root, path) : join(stage.root, stage.workdir, path)
    switch (name) {
      case 'WORKDIR':
        stage.workdir = rest
        await mkdir(inside('.'), { recursive: true })
        break
      case 'ENV':
        for (const pair of rest.split(/ +/)) stage.env[pair.split('=')[0]!] = pair.split('=')[1]!
        break
      case 'COPY': {
        const words = rest.split(/ +/)
        const from = /^--from=(\w+)$/.exec(words[0]!)?.[1]
        const sources = words.slice(from ? 1 : 0, -1)
        const target = words.at(-1)!
        for (const source of sources) {
          if (!from && !sent.includes(source)) throw new Error(`.dockerignore keeps ${source} back`)
          const path = from ? join(stages.get(from)!.root, source) : join(context, source)
          // As COPY does: the contents of a folder, and a file into a folder that ends with a slash.
          const isInto = target.endsWith('/') || sources.length > 1
          await cp(path, isInto ? join(inside(target), basename(source)) : inside(target), {
            recursive: true,
            verbatimSymlinks: true,
          })
        }
        break
      }
      case 'RUN':
        await runIn(stage, rest, owner)
        break
      case 'USER':
        stage.user = rest
        break
      case 'ENTRYPOINT':
        stage.entrypoint = JSON.parse(rest) as string[]
        break
      case 'CMD':
        stage.command = JSON.parse(rest) as string[]
        break
      case 'HEALTHCHECK':
        stage.healthcheck = JSON.parse(/CMD (\[.*\])$/.exec(rest)![1]!) as string[]
        break
      case 'EXPOSE':
        break
      default:
        throw new Error(`cannot do ${name} ${rest}`)
    }
  }
  return image!
}

/** As much of the base image as the Dockerfile relies on. */
async function newStage(root: string): Promise<BuiltImage> {
  await mkdir(join(root, 'var', 'lib'), { recursive: true })
  return { root, workdir: '/', env: {}, user: '', entrypoint: [], command: [], healthcheck: [] }
}

/** The Node of this process stands for the image's. */
export const nodePath = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`

async function runIn(stage: BuiltImage, script: string, owner: string): Promise<void> {
  const here = script.replace(/(?<=\s)\/(?=\w)/g, `${stage.root}/`).replaceAll('node:node', owner)
  await run('sh', ['-ec', here], {
    cwd: join(stage.root, stage.workdir),
    env: {
      // How this machine reaches its registry.
      ...process.env,
      PATH: nodePath,
      npm_config_prefer_offline: 'true',
      npm_config_audit: 'false',
      ...stage.env,
    },
    maxBuffer: 1 << 26,
  })
}
