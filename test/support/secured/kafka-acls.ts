// What `setup --print-acls` prints, understood as `kafka-acls.sh` does: of Kafka's jars that the tests have, none holds it.
import kafkajs from 'kafkajs'
import type { AclEntry } from 'kafkajs'

const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafkajs

/** One thing that a user is allowed to do, `operation` by Kafka's own name. */
export interface Grant {
  principal: string
  operation: string
  resource: 'topic' | 'group'
  name: string
  isPrefix: boolean
}

/** What the words of one `kafka-acls.sh` grant; throws for words that it does not take. */
export function grantsOf(words: readonly string[]): Grant[] {
  const given = new Map<string, string[]>()
  for (let at = 0; at < words.length; at++) {
    const flag = words[at]!
    if (flag === '--add') given.set(flag, [])
    else given.set(flag, [...(given.get(flag) ?? []), words[++at]!])
  }
  const takes = [
    '--bootstrap-server',
    '--add',
    '--allow-principal',
    '--operation',
    '--topic',
    '--group',
    '--resource-pattern-type',
  ]
  const unknown = [...given.keys()].find((flag) => !takes.includes(flag))
  if (unknown !== undefined || !given.has('--add')) throw new Error(`kafka-acls.sh ${words.join(' ')}`)
  const isPrefix = given.get('--resource-pattern-type')?.[0] === 'prefixed'
  return (['topic', 'group'] as const).flatMap((resource) =>
    (given.get(`--${resource}`) ?? []).flatMap((name) =>
      given.get('--operation')!.map((operation) => ({
        principal: given.get('--allow-principal')![0]!,
        operation: constantOf(operation),
        resource,
        name,
        isPrefix,
      })),
    ),
  )
}

export const entryOf = ({ principal, operation, resource, name, isPrefix }: Grant): AclEntry => ({
  resourceType: resource === 'topic' ? AclResourceTypes.TOPIC : AclResourceTypes.GROUP,
  resourceName: name,
  resourcePatternType: isPrefix ? ResourcePatternTypes.PREFIXED : ResourcePatternTypes.LITERAL,
  principal,
  host: '*',
  operation: AclOperationTypes[operation as 'READ'],
  permissionType: AclPermissionTypes.ALLOW,
})

/** DescribeConfigs → DESCRIBE_CONFIGS */
const constantOf = (operation: string): string => operation.replace(/(?!^)([A-Z])/g, '_$1').toUpperCase()
