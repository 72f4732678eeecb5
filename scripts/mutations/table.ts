import type { MutationResult } from './mutation.ts'

const begins = '<!-- mutations -->'
const ends = '<!-- /mutations -->'

/** The results in Markdown, as test/README.md has them. */
export function table(results: readonly MutationResult[], minutes: number): string {
  const caught = results.filter(({ verdict }) => verdict === 'caught').length
  return [
    `${caught} of ${results.length} caught, in ${Math.ceil(minutes)} minutes.`,
    '',
    '| switched off | promise | caught by |',
    '| --- | --- | --- |',
    ...results.map(({ mutation: { name, promise, test }, verdict, detail }) => {
      const by = `[${test.file.replace('.test.ts', '')}](${test.file})`
      const tests = detail.split('; ').join('”, “')
      return `| ${cell(name)} | ${cell(promise)} | ${verdict === 'caught' ? `${by}: “${cell(tests)}”` : `**${verdict}**`} |`
    }),
  ].join('\n')
}

/** The README's text with another table between its marks. */
export function withTable(text: string, made: string): string {
  const from = text.indexOf(begins)
  const to = text.indexOf(ends)
  if (from < 0 || to < from) throw new Error(`test/README.md has no ${begins} … ${ends}`)
  return `${text.slice(0, from + begins.length)}\n\n${made}\n\n${text.slice(to)}`
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
