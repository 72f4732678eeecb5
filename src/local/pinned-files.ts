import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { PostriderError } from '../errors.ts'
import { pins } from './pins.ts'

/** SHA-512 in base64, by file name. */
export type PinnedFiles = Readonly<Record<string, string>>

const isFetched = (name: string): boolean => /\.(jar|tar\.gz)$/.test(name)

/** Of the jars and archives in a folder, in order of their names. */
export async function digestsOf(folder: string): Promise<PinnedFiles> {
  const names = (await readdir(folder)).filter(isFetched).sort()
  const digests: Record<string, string> = {}
  for (const name of names) {
    const hash = createHash('sha512')
    await pipeline(createReadStream(join(folder, name)), hash)
    digests[name] = hash.digest('base64')
  }
  return digests
}

/**
 * Maven checks a file against what the same server says of it. This checks it against what Postrider was tested with.
 * @param what name and version of what was fetched; a version that is not pinned is not checked
 * @param folder holds the fetched files
 * @throws PostriderError `local` that names the first file which is another one, is missing or is too many
 */
export async function checkPinned(
  what: string,
  folder: string,
  pinned: Readonly<Record<string, PinnedFiles>> = pins,
): Promise<void> {
  const expected = pinned[what]
  if (!expected) return
  const found = await digestsOf(folder)
  const names = [...new Set([...Object.keys(expected), ...Object.keys(found)])].sort()
  const name = names.find((each) => found[each] !== expected[each])
  if (name === undefined) return
  throw new PostriderError(
    'local',
    `${what}: ${faultOf(name, expected[name], found[name])}, so nothing of it is used. ` +
      'See which server it came from (mirrors and proxies in the settings.xml of Maven), ' +
      'remove the file from ~/.m2/repository, and try again',
  )
}

function faultOf(name: string, expected: string | undefined, found: string | undefined): string {
  if (found === undefined) return `Maven did not bring ${name}`
  if (expected === undefined) return `Maven brought ${name}, which is no part of it`
  return `${name} is not the file that Postrider was tested with (its SHA-512 is ${found}, not ${expected})`
}
