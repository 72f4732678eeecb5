import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '..', '..')

export const readPage = (path: string): string => readFileSync(join(root, path), 'utf8')

/** What users read: README.md and every page in docs/, by path. */
export const userPages: readonly string[] = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => `docs/${name}`),
]

/** Those, and what contributors read. */
export const allPages: readonly string[] = [
  ...userPages,
  'CONTRIBUTING.md',
  'bench/README.md',
  'test/README.md',
  'test/operating.md',
  'test/faults/README.md',
]

/** The code blocks in one language, of one page or of all that users read. */
export function codeBlocks(language: string, pages: readonly string[] = userPages): string[] {
  const block = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms')
  return pages.flatMap((page) => [...readPage(page).matchAll(block)].map(([, code]) => code!))
}

/** A page without its code blocks and code spans. */
export const proseOf = (text: string): string => text.replace(/^```.*?^```/gms, '').replace(/`[^`\n]*`/g, '')
