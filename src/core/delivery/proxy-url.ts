/** More than a name and a port can have. */
export const maxProxyLength = 300

/** In place of a proxy's URL: no proxy. */
export const noProxy = 'none'

/**
 * What is wrong with the URL of a forward proxy, one phrase a fault. The URL itself is not repeated: it may hold a password.
 */
export function proxyUrlFaults(text: string): string[] {
  if (text.length > maxProxyLength)
    return [`is ${text.length} characters long, at most ${maxProxyLength} are allowed`]
  const url = URL.parse(text)
  if (url === null || !/^https?:\/\//i.test(text) || /[\s\u0000-\u001f\u007f]/.test(text))
    return ['is not the URL of a proxy, such as http://proxy.example.com:3128']
  const isMore = url.pathname !== '/' || url.search !== '' || url.hash !== ''
  return isMore ? ['has more behind its host and port'] : []
}

/** The same of a destination's own, which everybody can read who may see the settings. */
export function ownProxyFaults(text: string): string[] {
  if (text === noProxy) return []
  const url = URL.parse(text)
  const hasLogin = url !== null && (url.username !== '' || url.password !== '')
  return [
    ...proxyUrlFaults(text),
    ...(hasLogin
      ? [
          'holds a user or a password, which all who see the settings would see: only WEBHOOK_PROXY takes them',
        ]
      : []),
  ]
}
