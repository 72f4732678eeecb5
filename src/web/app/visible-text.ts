// Names come from outside. What draws nothing, or turns text around, is shown as what it is: "exe.live" may be "evil.exe".

/** Invisible in any text; between letters of ASCII also what scripts and emoji need elsewhere. */
const invisible =
  /[\u00AD\u061C\u180E\u200B\u200E\u200F\u2028\u2029\u202A-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFB]|(?<=^|[\x20-\x7E])[\u200C\u200D]/gu

/** More marks on one letter than any language writes draw over the lines above. */
const stackedMarks = /(\p{M}{4})\p{M}+/gu

const isPlain = /^[\x20-\x7E]*$/

/** What a person should see of a text. */
export const visibleText = (text: string): string =>
  isPlain.test(text)
    ? text
    : text
        .replace(stackedMarks, '$1‹…›')
        .replace(
          invisible,
          (char) => `‹U+${char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}›`,
        )
