/** A string of these alone needs nothing but quotes to be JSON; lone surrogates, which do, are left out. */
const plain = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/

/** JSON of a string; most are plain, and the check costs half of what JSON.stringify does. */
export function quoted(text: string): string {
  return plain.test(text) ? `"${text}"` : JSON.stringify(text)
}
