import type { Type, types } from 'avsc'

/**
 * Whether some list in the schema holds items that take no bytes: a few bytes could then say that there are 2^53
 * of them, and reading would not end.
 */
export function hasEndlessItems(type: Type, seen = new Set<Type>()): boolean {
  if (seen.has(type)) return false
  seen.add(type)
  switch (type.typeName) {
    case 'array': {
      const { itemsType } = type as types.ArrayType
      return takesNoBytes(itemsType, new Set()) || hasEndlessItems(itemsType, seen)
    }
    case 'map':
      return hasEndlessItems((type as types.MapType).valuesType, seen)
    case 'record':
    case 'error':
      return (type as types.RecordType).fields.some((field) => hasEndlessItems(field.type, seen))
    case 'union:wrapped':
    case 'union:unwrapped':
      return (type as types.UnwrappedUnionType).types.some((branch) => hasEndlessItems(branch, seen))
    default:
      return false
  }
}

function takesNoBytes(type: Type, seen: Set<Type>): boolean {
  if (type.typeName === 'null') return true
  if (type.typeName === 'fixed') return (type as types.FixedType).size === 0
  if (type.typeName !== 'record' && type.typeName !== 'error') return false
  if (seen.has(type)) return true
  seen.add(type)
  return (type as types.RecordType).fields.every((field) => takesNoBytes(field.type, seen))
}
