/** One mechanism switched off, and the test that has to notice. */
export interface Mutation {
  /** In a few words, what is switched off. */
  name: string
  /** The row of test/README.md whose promise this breaks, letter by letter. */
  promise: string
  /** Where, from the root of the checkout. */
  file: string
  /** Text that stands in the file exactly once, and what is put in its place. */
  find: string
  replace: string
  /**
   * The test's file, from `test/` on; its name, or the part of it that is no pattern; and, of a subtest, that of the
   * test that it is within.
   */
  test: { file: string; name: string; within?: string }
}

/** `caught`: the test failed. `survived`: it passed. `broken`: it could not be told. */
export interface MutationResult {
  mutation: Mutation
  verdict: 'caught' | 'survived' | 'broken'
  /** The tests that failed, or why it is broken. */
  detail: string
  seconds: number
}

/** The file's text with the mechanism switched off. Throws where `find` does not stand there exactly once. */
export function mutate(text: string, { name, file, find, replace }: Mutation): string {
  const times = text.split(find).length - 1
  if (times !== 1)
    throw new Error(`"${name}": its text stands in ${file} ${times} times, not once; bring it up to date`)
  // A function, for `$` in a text that replaces means something.
  return text.replace(find, () => replace)
}
