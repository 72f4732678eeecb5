const plain = /^[\x21-\x24\x26-\x7e]*$/
const others = /[^\x21-\x24\x26-\x7e]/gu

/**
 * An id as a header's value. Producers choose messageIds, and what a header cannot hold (spaces, control characters,
 * letters beyond ASCII) is percent-encoded, as is the percent sign: different ids stay different.
 */
export function headerText(id: string): string {
  return plain.test(id) ? id : id.toWellFormed().replace(others, (character) => encodeURIComponent(character))
}
