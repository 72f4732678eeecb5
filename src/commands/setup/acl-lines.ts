import type { KafkaOperation, Permission } from '../../core/permissions.ts'

/** As `kafka-acls.sh` spells them. */
const spelled: Record<KafkaOperation, string> = {
  READ: 'Read',
  WRITE: 'Write',
  CREATE: 'Create',
  DESCRIBE: 'Describe',
  DESCRIBE_CONFIGS: 'DescribeConfigs',
  ALTER_CONFIGS: 'AlterConfigs',
}

/** Commands for a shell that grant all of it: one for each kind of resource and set of operations. */
export function aclLines(
  permissions: readonly Permission[],
  principal: string,
  brokers: readonly string[],
): string[] {
  const byResource = Map.groupBy(
    permissions,
    ({ resource, name, isPrefix }) => `${resource} ${isPrefix} ${name}`,
  )
  const byOperations = Map.groupBy(byResource.values(), (its) => {
    const { resource, isPrefix } = its[0]!
    return `${resource} ${isPrefix} ${its.map(({ operation }) => operation).join()}`
  })
  return [...byOperations.values()].map((resources) => {
    const operations = resources[0]!.map(({ operation }) => operation)
    const { resource, isPrefix } = resources[0]![0]!
    return [
      `kafka-acls.sh --bootstrap-server ${quoted(brokers.join())} --add --allow-principal ${quoted(principal)}`,
      ...operations.map((operation) => `--operation ${spelled[operation]}`),
      ...resources.map(([first]) => `--${resource} ${quoted(first!.name)}`),
      ...(isPrefix ? ['--resource-pattern-type prefixed'] : []),
    ].join(' ')
  })
}

/** For a POSIX shell. */
const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
