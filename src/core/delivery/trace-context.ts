/**
 * Whether a text is a `traceparent` of W3C Trace Context: version, trace, parent and flags in lower-case hex, 55
 * characters, with no version ff and no ids of zeros alone. Anything else is ignored wherever it comes from.
 */
export const isTraceparent = (text: string): boolean =>
  text.length === 55 &&
  /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/.test(text)
