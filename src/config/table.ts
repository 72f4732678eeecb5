import { variableNames, variables } from './variables.ts'

const cell = (text: string): string => text.replaceAll('|', '\\|')

/** Every environment variable as a Markdown table; the README holds a copy, which a test compares. */
export function settingsTable(): string {
  const rows = variableNames.map((name) => {
    const { default: preset, takes, meaning, secret } = variables[name]
    const names = secret ? `\`${name}\` or \`${name}_FILE\`` : `\`${name}\``
    return `| ${names} | ${preset ? `\`${cell(preset)}\`` : ''} | ${cell(takes)} | ${cell(meaning)} |`
  })
  return ['| variable | default | takes | meaning |', '|---|---|---|---|', ...rows].join('\n')
}
