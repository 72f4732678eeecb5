import {
  partPermissions,
  securedParts,
  type KafkaOperation,
  type SecuredPart,
} from '../src/core/permissions.ts'
import { topicNames } from '../src/core/topics.ts'

const letters: Record<KafkaOperation, string> = {
  CREATE: 'C',
  READ: 'R',
  WRITE: 'W',
  DESCRIBE: 'D',
  DESCRIBE_CONFIGS: 'DC',
  ALTER_CONFIGS: 'AC',
}

/** What each part must be allowed to do, as a Markdown table; docs/secured-clusters.md holds a copy, which a test compares. */
export function permissionsTable(): string {
  const names = { topics: topicNames(''), tiers: ['<tier>'], groupId: '<GROUP_ID>' }
  const rows = new Map<string, Partial<Record<SecuredPart, string>>>()
  for (const part of securedParts)
    for (const { resource, name, isPrefix, operation } of partPermissions(part, names)) {
      const label = `${resource} \`${name}${isPrefix ? '*' : ''}\``
      const row = rows.get(label) ?? {}
      rows.set(label, {
        ...row,
        [part]: row[part] ? `${row[part]} ${letters[operation]}` : letters[operation],
      })
    }
  return [
    `| | ${securedParts.join(' | ')} |`,
    `|---|${securedParts.map(() => '---|').join('')}`,
    ...[...rows].map(
      ([label, row]) => `| ${label} | ${securedParts.map((part) => row[part] ?? '').join(' | ')} |`,
    ),
  ].join('\n')
}
