export const maxUrlLength = 2_048
/** Of a host name, and of each of its parts between dots (RFC 1035, 2.3.4): no resolver takes a longer one. */
const maxNameLength = 253
const maxLabelLength = 63

/**
 * What is wrong with a webhook URL (docs/destinations.md), one phrase a fault. The URL itself is not repeated:
 * it may hold a token.
 */
export function urlFaults(text: string): string[] {
  const faults: string[] = []
  if (text.length > maxUrlLength)
    faults.push(`is ${text.length} characters long, at most ${maxUrlLength} are allowed`)
  // The URL parser would take these away silently.
  if (/[\s\u0000-\u001f\u007f]/.test(text)) faults.push('holds white space or control characters')
  const url = URL.parse(text)
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]
  if (url !== null && scheme !== undefined && !/^https?$/i.test(scheme)) {
    faults.push(`begins with "${scheme}:", only http:// and https:// are allowed`)
  } else if (url === null || !/^https?:\/\//i.test(text)) {
    faults.push('is not an absolute URL such as https://example.com/hook')
  }
  if (url !== null && (url.username !== '' || url.password !== ''))
    faults.push('holds a user name or password: send them in a header instead')
  const name = url?.hostname.replace(/\.$/, '') ?? ''
  if (name.length > maxNameLength || name.split('.').some((label) => label.length > maxLabelLength))
    faults.push(
      `has a host name of more than ${maxNameLength} characters, or more than ${maxLabelLength} between two dots`,
    )
  return faults
}

/**
 * Why webhooks never get to this host of a URL, in one line; null where they may, and where only a look-up can say. It
 * depends on what the deciding process allows.
 */
export type HostRefusal = (hostname: string) => string | null

export const anyHost: HostRefusal = () => null

/** One spelling for all spellings of one URL; what is compared to find a URL that is there already. */
export function canonicalUrl(text: string): string {
  const url = URL.parse(text)
  if (url === null) return text
  url.hash = ''
  return url.href
}
