/** Invisible: joiners, soft hyphens, direction marks, variation selectors. Two names must not differ by these alone. */
const invisible = /[\p{Cf}\ufe00-\ufe0f]/gu
const apostrophes = /['\u2019\u02bc]/gu
const word = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu
/** `monthlyActive`, `Q4Buyers`: before a capital that follows a small letter, a letter without case, or a digit. */
const afterSmall = /(?<=[\p{Ll}\p{Lm}\p{Lo}\p{N}]\p{M}*)(?=[\p{Lu}\p{Lt}])/gu
/** `HTTPUsers`: before the last capital of a row, when a small letter follows it. */
const endOfCapitals = /(?<=[\p{Lu}\p{Lt}]\p{M}*)(?=[\p{Lu}\p{Lt}]\p{M}*\p{Ll})/gu

/**
 * The snake_case form of a name in any script: words of letters and digits, in lower case, joined by `_`. Scripts
 * without case or spaces stay as they are. Apostrophes are left out (`Women's` is `womens`); forms that only look
 * different (full width, ligatures, composed or not) come to one. A digit belongs to the word that it stands in:
 * `top10` stays one. Empty for a name without a letter or digit.
 */
export function snakeCase(name: string): string {
  const plain = name.normalize('NFKC').replace(invisible, '').replace(apostrophes, '')
  const words = plain.replace(afterSmall, '_').replace(endOfCapitals, '_').match(word) ?? []
  return words.join('_').toLowerCase().normalize('NFKC')
}
