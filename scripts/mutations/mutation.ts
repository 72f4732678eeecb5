/** One mechanism switched off, and the test that has to notice. */
export interface Mutation {
  /** Names it, in kebab-case. */
  id: string
  /** Path from the root of the checkout. */
  file: string
  /** Text that the file has exactly once, and its replacement. */
  find: string
  replace: string
  /** The file from `test/` on; the test's name or a part of it; for a subtest, the name of the test around it. */
  test: { file: string; name: string; within?: string }
}

/** `caught`: the test failed. `survived`: it passed. `broken`: it could not be run. */
export interface MutationResult {
  mutation: Mutation
  verdict: 'caught' | 'survived' | 'broken'
  /** The tests that failed, or why it is broken. */
  detail: string
  seconds: number
}

/** The file's text with the mechanism switched off. Throws unless the file has `find` exactly once. */
export function mutate(text: string, { id, file, find, replace }: Mutation): string {
  const times = text.split(find).length - 1
  if (times !== 1)
    throw new Error(`${id}: ${file} has its text ${times} times, not once; update the mutation`)
  // A function, because `$` has a meaning in a replacement string.
  return text.replace(find, () => replace)
}
