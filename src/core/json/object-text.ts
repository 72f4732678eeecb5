import { canonicalKeys } from './canonical-json.ts'

const quote = 0x22

/**
 * The members of a JSON object where they lie in its text: to read a few of them takes a fraction of the time that it takes
 * to make an object of all.
 */
export class ObjectText {
  readonly #text: string
  /** Where the keys begin. */
  readonly #keys: readonly number[]
  /** The members that are objects and were asked for: none is scanned twice. */
  #objects: Map<string, ObjectText | null> | null = null

  private constructor(text: string, keys: readonly number[]) {
    this.#text = text
    this.#keys = keys
  }

  /** Null for what is no canonical object (`canonicalObject`), which is to be parsed. */
  static of(text: string): ObjectText | null {
    const keys = canonicalKeys(text)
    return keys && new ObjectText(text, keys)
  }

  /**
   * The JSON of a member's value; null where there is none.
   *
   * @param key one that JSON writes as it is
   */
  member(key: string): string | null {
    const text = this.#text
    const keys = this.#keys
    for (let index = 0; index < keys.length; index++) {
      const start = keys[index]! + 1
      const end = start + key.length
      if (text.charCodeAt(end) !== quote || text.slice(start, end) !== key) continue
      const next = index + 1 === keys.length ? text.length : keys[index + 1]!
      // Behind `":`, and before the comma or the brace.
      return text.slice(end + 2, next - 1)
    }
    return null
  }

  /** The members of a member, whose JSON this is. */
  object(key: string, json: string): ObjectText | null {
    this.#objects ??= new Map()
    let object = this.#objects.get(key)
    if (object === undefined) this.#objects.set(key, (object = ObjectText.of(json)))
    return object
  }
}
